package connect_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
)

func ExampleOpen() {
	rdb, err := connect.Open(connect.Settings{
		URL:      "redis+sentinel://ada@sentinel-1:26379,sentinel-2:26379/main/5",
		Password: "from a variable",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rdb.Close()
	o := rdb.(*redis.Client).Options()
	fmt.Println("the master, as", o.Username, "in database", o.DB)

	_, err = connect.Open(connect.Settings{URL: "redis://ada:secret@localhost:port"})
	fmt.Println(err)
	// Output:
	// the master, as ada in database 5
	// the URL of Redis: the port is not a number
}

func ExampleHasPassword() {
	fmt.Println(connect.HasPassword("redis://ada@localhost"))
	fmt.Println(connect.HasPassword("redis://ada:secret@localhost"))
	// Output:
	// false
	// true
}
