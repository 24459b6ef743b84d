package cli_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/cli"
)

func ExampleMain() {
	status := cli.Main([]string{"http-key", "POST", "/orders", "--user", "ada", "--offline"}, nil)
	fmt.Println("status", status)
	// Output:
	// http:DeJBYMmAjney_yc9IwRZeBYYdywWC9oqd6VLibsMjh8
	// status 0
}
