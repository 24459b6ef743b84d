package interop;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.config.SingleServerConfig;

/** Makes clients. All that no command sets is Redisson's default. */
final class Connection {
    private Connection() {}

    /** Returns one client, or one for each server in the mode masters. */
    static List<RedissonClient> open(Command command) throws ReflectiveOperationException {
        if (!command.text("mode").equals("masters")) {
            return List.of(open(command, command.text("addrs")));
        }
        List<RedissonClient> clients = new ArrayList<>();
        for (String address : command.text("addrs").split(",")) {
            clients.add(open(command, address));
        }
        return clients;
    }

    /** Connects to one server, to sentinels, or to a Cluster. */
    private static RedissonClient open(Command command, String addrs) throws ReflectiveOperationException {
        Config config = new Config();
        if (command.has("watchdog")) {
            config.setLockWatchdogTimeout(command.number("watchdog"));
        }
        if (command.has("fairwait")) { // by reflection, since versions before 3.46 do not have it
            Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, command.number("fairwait"));
        }
        String[] addresses = addrs.split(",");
        for (int i = 0; i < addresses.length; i++) {
            addresses[i] = "redis://" + addresses[i];
        }
        switch (command.text("mode")) {
            case "sentinel" -> config.useSentinelServers()
                .setMasterName(command.text("master")).addSentinelAddress(addresses);
            case "cluster" -> listen(config.useClusterServers().addNodeAddress(addresses), command);
            default -> delay(config.useSingleServer().setAddress(addresses[0]), command);
        }
        return Redisson.create(config);
    }

    /** Lets a client listen as versions before 3.22 do, if the command says so; they do not have the setting. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void listen(ClusterServersConfig servers, Command command) throws ReflectiveOperationException {
        if (command.has("sharded")) {
            Class mode = Class.forName("org.redisson.config.ShardedSubscriptionMode");
            ClusterServersConfig.class.getMethod("setShardedSubscriptionMode", mode)
                .invoke(servers, Enum.valueOf(mode, command.text("sharded")));
        }
    }

    /** Lets a client wait for so long before each further try, if the command says so. By default that is random. */
    private static void delay(SingleServerConfig server, Command command) {
        if (command.has("retrydelay")) {
            server.setRetryDelay(new ConstantDelay(Duration.ofMillis(command.number("retrydelay"))));
        }
    }

    /** Connects to the server of the test, with few connections. */
    static RedissonClient toReferee(String address) {
        Config config = new Config();
        config.setThreads(2).setNettyThreads(2);
        config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }
}
