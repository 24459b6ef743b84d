package register_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/register"
)

func TestRegisterRefusesSmallerTokens(t *testing.T) {
	var file bytes.Buffer
	path := filepath.Join(t.TempDir(), "r")
	server, err := register.Serve(path, history.NewLog(&file, "register"))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := register.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, test := range []struct {
		name    string
		token   int64
		refused bool
	}{{"a", 2, false}, {"a", 2, false}, {"a", 1, true}, {"b", 1, false}, {"a", 3, false}, {"a", 2, true}} {
		reply, err := client.Write(register.Request{By: "w", Name: test.name, Token: test.token})
		if err != nil || reply.Refused != test.refused {
			t.Errorf("%s %d: %+v, error %v", test.name, test.token, reply, err)
		}
	}
	if reply, err := client.Write(register.Request{Name: "a", Token: 1, Unfenced: true}); err != nil || reply.Refused {
		t.Errorf("the unfenced side has seen no token yet: %+v, error %v", reply, err)
	}
	server.Close()
	events, err := history.Read(&file)
	if err != nil || len(events) != 7 || !events[2].Refused || events[2].By != "w" || !events[6].Unfenced {
		t.Errorf("history %+v, error %v", events, err)
	}
}
