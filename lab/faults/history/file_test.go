package history_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

func TestReadReturnsWhatWasWrittenInOrder(t *testing.T) {
	var file bytes.Buffer
	log := history.NewLog(&file, "me")
	log.Say(history.Event{At: 2, Kind: history.Return, Names: []string{"a"}, Token: 7, Err: "held"})
	log.Say(history.Event{At: 1, Kind: history.Call, By: "you"})
	if err := log.Err(); err != nil {
		t.Fatal(err)
	}
	events, err := history.Read(&file)
	if err != nil || len(events) != 2 {
		t.Fatalf("%d events, error %v", len(events), err)
	}
	if events[0].By != "you" || events[0].Wall == 0 {
		t.Errorf("first event: %+v", events[0])
	}
	want := history.Event{
		At: 2, Wall: events[1].Wall, By: "me", Kind: history.Return, Names: []string{"a"}, Token: 7, Err: "held",
	}
	if !reflect.DeepEqual(events[1], want) {
		t.Errorf("second event: %+v", events[1])
	}
}

func TestReadNamesTheMalformedLine(t *testing.T) {
	_, err := history.Read(strings.NewReader("{}\n{\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v", err)
	}
}

func TestClockAdvances(t *testing.T) {
	if a, b := history.Now(), history.Now(); a <= 0 || b < a {
		t.Errorf("%d, then %d", a, b)
	}
}
