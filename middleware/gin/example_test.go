package ginlock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(c *gin.Context) {
	user, _, _ := c.Request.BasicAuth()
	c.Set("user", user)
}

// One checkout of a cart at a time.
func ExampleExclusive() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	entered, leave := make(chan struct{}), make(chan struct{})
	checkout := func(c *gin.Context) {
		token, _ := core.TokenFrom(c.Request.Context()) // for the database: it refuses a smaller one than it has seen
		entered <- struct{}{}
		<-leave
		c.String(http.StatusOK, "paid under token %d", token)
	}
	guard := ginlock.Exclusive(locks.Mutex, httplock.Keys(httplock.ByContext("user"), httplock.ByPathValue("id")))
	router := gin.New()
	router.Use(gin.Recovery())
	router.POST("/cart/:id/checkout", authenticate, guard, checkout)
	srv := httptest.NewServer(router)
	defer srv.Close()

	post := func() string {
		req, err := http.NewRequest(http.MethodPost, srv.URL+"/cart/7/checkout", nil)
		if err != nil {
			panic(err)
		}
		req.SetBasicAuth("ada", "secret")
		resp, err := srv.Client().Do(req)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		return resp.Status
	}
	first := make(chan string)
	go func() { first <- post() }()
	<-entered
	fmt.Println("second, while the first runs:", post())
	close(leave)
	fmt.Println("first:", <-first)

	// Output:
	// second, while the first runs: 409 Conflict
	// first: 200 OK
}

// A service that answers all its errors in one place.
func ExampleErrorsOnly() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	render := func(c *gin.Context) {
		c.Next()
		if err := c.Errors.Last(); err != nil && !c.Writer.Written() {
			c.JSON(-1, gin.H{"error": err.Error()}) // -1: the status that is set already
		}
	}
	router := gin.New()
	router.Use(render)
	guard := ginlock.Exclusive(locks.Mutex, httplock.ByContext("user"), ginlock.ErrorsOnly())
	router.POST("/orders", guard, func(c *gin.Context) { c.Status(http.StatusCreated) })

	answer := httptest.NewRecorder() // of a request that nobody has logged in for
	router.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/orders", nil))
	fmt.Println(answer.Code, answer.Body)

	// Output:
	// 401 {"error":"holdfast: request refused: scope-required"}
}
