package messages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	recipejetstream "github.com/holdfast-go/holdfast/examples/messages/jetstream"
	"github.com/holdfast-go/holdfast/examples/messages/kafka"
	"github.com/holdfast-go/holdfast/examples/messages/rabbitmq"
	"github.com/holdfast-go/holdfast/examples/messages/redisstreams"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// topic is the name of the stream, topic or queue, and dead the one for parked messages.
const topic, dead = "orders", "orders.parked"

// partitions is how many the topic of Kafka has.
const partitions = 8

// broker is a kind of broker: how to start one, and how a consumer process uses the recipe.
type broker struct {
	start   func(t *testing.T) running
	consume func(ctx context.Context, w *worker) error
	lacks   map[fault]string
}

// running is a broker that runs.
type running interface {
	addr() string
	publish(ctx context.Context, text string) error
	restart(t *testing.T)
	// left returns how many messages are not acknowledged, and how many are parked.
	left(ctx context.Context) (pending, parked int, err error)
}

var brokers = map[string]broker{
	"redisstreams": {startStreams, consumeStreams, map[fault]string{rebalance: "a stream has no partitions"}},
	"kafka":        {startKafka, consumeKafka, map[fault]string{slow: "a partition that another member gets: rebalance"}},
	"jetstream":    {startJetStream, consumeJetStream, map[fault]string{rebalance: "a consumer has no partitions"}},
	"rabbitmq":     {startRabbitMQ, consumeRabbitMQ, map[fault]string{rebalance: "a queue has no partitions"}},
}

// ignored are goroutines of brokers that outlive them.
var ignored = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*Server).Start"),
	goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushLoop"),
}

// Redis Streams

type streams struct {
	server *testkit.Server
	rdb    *redis.Client
}

func startStreams(t *testing.T) running {
	server := testkit.Start(t, testkit.AOF())
	return &streams{server, server.Client()}
}

func (s *streams) addr() string         { return s.server.Network() + " " + s.server.Addr() }
func (s *streams) restart(t *testing.T) { s.server.Kill(); s.server.Restart() }

func (s *streams) publish(ctx context.Context, text string) error {
	return s.rdb.XAdd(ctx, &redis.XAddArgs{Stream: topic, Values: []string{"text", text}}).Err()
}

func (s *streams) left(ctx context.Context) (pending, parked int, err error) {
	groups, err := s.rdb.XInfoGroups(ctx, topic).Result()
	if err != nil {
		return 0, 0, err
	}
	for _, g := range groups {
		pending += int(g.Pending + g.Lag)
	}
	n, err := s.rdb.XLen(ctx, dead).Result()
	return pending, int(n), err
}

func consumeStreams(ctx context.Context, w *worker) error {
	var network, addr string
	_, _ = fmt.Sscan(w.Addr, &network, &addr)
	c := &redisstreams.Consumer{
		Redis:  redis.NewClient(&redis.Options{Network: network, Addr: addr}),
		Stream: topic, Group: "tests", Name: w.Name, Idle: expiry, Parked: dead,
	}
	c.Handle = handlerOf(w, textOf, c.Heartbeat())
	return c.Run(ctx)
}

// textOf is the text of an entry, "" if it has none.
func textOf(m redis.XMessage) string {
	text, _ := m.Values["text"].(string)
	return text
}

// Kafka, by kfake

type kafkaBroker struct {
	cluster *kfake.Cluster
	opts    []kfake.Opt
	client  *kgo.Client
}

func startKafka(t *testing.T) running {
	k := &kafkaBroker{opts: []kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(testkit.Port(t)), kfake.DataDir(t.TempDir()), kfake.SyncWrites(),
		kfake.SeedTopics(partitions, topic), kfake.SeedTopics(1, dead), kfake.GroupMinSessionTimeout(100 * time.Millisecond),
	}}
	k.up(t)
	t.Cleanup(func() {
		k.client.Close()
		k.cluster.Close()
	})
	var err error
	if k.client, err = kgo.NewClient(kgo.SeedBrokers(k.addr()), kgo.RecordPartitioner(kgo.RoundRobinPartitioner())); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kafkaBroker) up(t *testing.T) {
	var err error
	if k.cluster, err = kfake.NewCluster(k.opts...); err != nil {
		t.Fatal(err)
	}
}

func (k *kafkaBroker) addr() string { return k.cluster.ListenAddrs()[0] }

func (k *kafkaBroker) restart(t *testing.T) {
	k.cluster.Close()
	k.up(t)
}

func (k *kafkaBroker) publish(ctx context.Context, text string) error {
	return k.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(text)}).FirstErr()
}

func (k *kafkaBroker) left(ctx context.Context) (pending, parked int, err error) {
	admin := kadm.NewClient(k.client)
	commits, err := admin.FetchOffsets(ctx, "tests")
	if err != nil {
		return 0, 0, err
	}
	ends, err := admin.ListEndOffsets(ctx, topic, dead)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Topic == dead {
			parked += int(o.Offset)
			return
		}
		commit, _ := commits.Lookup(o.Topic, o.Partition) // 0 if there is none
		pending += int(o.Offset - max(commit.At, 0))
	})
	return pending, parked, errors.Join(err, ends.Error())
}

func consumeKafka(ctx context.Context, w *worker) error {
	balancer := kgo.CooperativeStickyBalancer()
	if w.Fault == rebalance {
		balancer = kgo.RoundRobinBalancer() // each rebalance moves all partitions
	}
	client, err := kgo.NewClient(append(kafka.Options(),
		kgo.SeedBrokers(w.Addr), kgo.ConsumeTopics(topic), kgo.ConsumerGroup("tests"), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.SessionTimeout(expiry), kgo.HeartbeatInterval(200*time.Millisecond), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.Balancers(balancer),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		return err
	}
	c := &kafka.Consumer{Client: client, Parked: dead}
	c.Handle = batchHandlerOf(w, func(r *kgo.Record) string { return string(r.Value) })
	return c.Run(ctx)
}

// NATS JetStream, embedded

type natsBroker struct {
	server *natsserver.Server
	opts   natsserver.Options
	conn   *nats.Conn
	js     jetstream.JetStream
}

func startJetStream(t *testing.T) running {
	n := &natsBroker{opts: natsserver.Options{
		JetStream: true, StoreDir: t.TempDir(), Host: "127.0.0.1", Port: testkit.Port(t), NoLog: true, NoSigs: true, SyncAlways: true,
	}}
	n.up(t)
	var err error
	if n.conn, err = nats.Connect(n.addr(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond)); err == nil {
		n.js, err = jetstream.New(n.conn)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.conn.Close()
		n.server.Shutdown()
		n.server.WaitForShutdown()
	})
	for name, subject := range map[string]string{"orders": topic, "parked": dead} {
		if _, err := n.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = n.js.CreateConsumer(t.Context(), "orders", jetstream.ConsumerConfig{
		Durable: "tests", AckPolicy: jetstream.AckExplicitPolicy, AckWait: expiry,
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *natsBroker) up(t *testing.T) {
	opts := n.opts
	server, err := natsserver.NewServer(&opts)
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	if !server.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	n.server = server
}

func (n *natsBroker) addr() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.opts.Port) }

func (n *natsBroker) restart(t *testing.T) {
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.up(t)
}

func (n *natsBroker) publish(ctx context.Context, text string) error {
	_, err := n.js.Publish(ctx, topic, []byte(text))
	return err
}

func (n *natsBroker) left(ctx context.Context) (pending, parked int, err error) {
	consumer, err := n.js.Consumer(ctx, "orders", "tests")
	if err != nil {
		return 0, 0, err
	}
	info := consumer.CachedInfo()
	stream, err := n.js.Stream(ctx, "parked")
	if err != nil {
		return 0, 0, err
	}
	return int(info.NumPending) + info.NumAckPending, int(stream.CachedInfo().State.Msgs), nil
}

func consumeJetStream(ctx context.Context, w *worker) error {
	conn, err := nats.Connect(w.Addr, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		return err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	var consumer jetstream.Consumer
	for consumer == nil {
		if consumer, err = js.Consumer(ctx, "orders", "tests"); err != nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	c := &recipejetstream.Consumer{JetStream: js, Consumer: consumer, Parked: dead}
	c.Handle = handlerOf(w, func(m jetstream.Msg) string { return string(m.Data()) }, recipejetstream.Heartbeat(expiry))
	return c.Run(ctx)
}

// RabbitMQ, Debian's

type rabbit struct {
	dir        string
	port, dist int
	epmd       int
	names      *exec.Cmd // epmd, which the server would otherwise leave behind
	cmd        *exec.Cmd
	done       chan struct{}
	conn       *amqp.Connection
	restarts   int
}

func startRabbitMQ(t *testing.T) running {
	const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"
	if _, err := os.Stat(program); err != nil {
		t.Skip("rabbitmq-server is not installed: apt-get install rabbitmq-server")
	}
	r := &rabbit{dir: t.TempDir(), port: testkit.Port(t), dist: testkit.Port(t), epmd: testkit.Port(t)}
	r.names = exec.Command("epmd", "-port", strconv.Itoa(r.epmd), "-address", "127.0.0.1")
	r.names.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.names.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.down)
	r.up(t)
	r.connect(t)
	return r
}

func (r *rabbit) env() []string {
	name := "test" + strconv.Itoa(r.port) + "@localhost"
	return append(os.Environ(), "HOME="+r.dir, "ERL_EPMD_PORT="+strconv.Itoa(r.epmd), "RABBITMQ_NODENAME="+name,
		"RABBITMQ_NODE_PORT="+strconv.Itoa(r.port), "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_DIST_PORT="+strconv.Itoa(r.dist),
		"RABBITMQ_MNESIA_BASE="+filepath.Join(r.dir, "mnesia"), "RABBITMQ_LOG_BASE="+filepath.Join(r.dir, "log"),
		"RABBITMQ_PID_FILE="+filepath.Join(r.dir, "pid"), "RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(r.dir, "plugins"),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}")
}

func (r *rabbit) up(t *testing.T) {
	r.cmd = exec.Command("/usr/lib/rabbitmq/bin/rabbitmq-server")
	output, err := os.Create(filepath.Join(r.dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	r.cmd.Env, r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.env(), r.dir, output, output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	r.done = done
	go func() {
		defer close(done)
		_ = r.cmd.Wait()
	}()
	testkit.Eventually(t, within, "RabbitMQ", func() bool {
		select {
		case <-done:
			said, _ := os.ReadFile(output.Name())
			t.Fatalf("RabbitMQ has ended:\n%s", said)
		default:
		}
		conn, err := r.dial()
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	// It serves a moment before its boot is over, and until then it ignores that it is to start again, but not that it is to stop.
	testkit.Eventually(t, within, "the end of the boot", func() bool { return r.call(t, "erlang whereis [rabbit_boot]") == "undefined" })
}

// down ends the server, whose processes are one group, and its epmd.
func (r *rabbit) down() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
	_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	<-r.done
	_ = r.names.Process.Kill()
	_ = r.names.Wait()
}

func (r *rabbit) connect(t *testing.T) {
	var err error
	if r.conn, err = r.dial(); err != nil {
		t.Fatal(err)
	}
	channel, err := r.conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	if err := rabbitmq.Declare(channel, topic); err != nil {
		t.Fatal(err)
	}
}

func (r *rabbit) dial() (*amqp.Connection, error) { return amqp.Dial(r.addr()) }
func (r *rabbit) addr() string                    { return fmt.Sprintf("amqp://guest:guest@127.0.0.1:%d/", r.port) }

// restart restarts the broker inside its node, as rabbitmqctl stop_app and start_app do: all connections end, and the queues are
// recovered from the disk. Every tenth restart, from the first on, is one of the whole process, which takes much longer.
func (r *rabbit) restart(t *testing.T) {
	_ = r.conn.Close()
	if r.restarts%10 == 0 {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGTERM)
		<-r.done
		r.up(t)
	} else {
		r.call(t, "rabbit stop")
		if conn, err := r.dial(); err == nil {
			_ = conn.Close()
			t.Error("RabbitMQ has not stopped")
		}
		r.call(t, "rabbit start")
	}
	r.restarts++
	r.connect(t)
}

// call calls a function of the node, and returns what that returns.
func (r *rabbit) call(t *testing.T, function string) string {
	cookie, err := os.ReadFile(filepath.Join(r.dir, ".erlang.cookie"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("erl_call", "-address", "127.0.0.1:"+strconv.Itoa(r.dist), "-c", string(cookie), "-a", function)
	cmd.Env = r.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", function, err, out)
	}
	return string(out)
}

func (r *rabbit) publish(ctx context.Context, text string) error {
	channel, err := r.conn.Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	if err := channel.Confirm(false); err != nil {
		return err
	}
	confirmed, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", topic, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(text)})
	if err != nil {
		return err
	}
	if ok, err := confirmed.WaitContext(ctx); err != nil || !ok {
		return errors.Join(err, errors.New("not confirmed"))
	}
	return nil
}

func (r *rabbit) left(context.Context) (pending, parked int, err error) {
	channel, err := r.conn.Channel()
	if err != nil {
		return 0, 0, err
	}
	defer channel.Close()
	ready, err := channel.QueueDeclarePassive(topic, true, false, false, false, nil)
	if err != nil {
		return 0, 0, err
	}
	rejected, err := channel.QueueDeclarePassive(dead, true, false, false, false, nil)
	return ready.Messages, rejected.Messages, err
}

func consumeRabbitMQ(ctx context.Context, w *worker) error {
	var last *amqp.Connection
	w.drop = func() { _ = last.Close() }
	c := &rabbitmq.Consumer{Queue: topic, Dial: func() (conn *amqp.Connection, err error) {
		last, err = amqp.Dial(w.Addr)
		return last, err
	}}
	c.Handle = handlerOf(w, func(d amqp.Delivery) string { return string(d.Body) }, nil)
	return c.Run(ctx)
}
