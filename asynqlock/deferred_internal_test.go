package asynqlock

import (
	"testing"
	"time"
)

// TestBusyOutlastsLongDelays: a task that comes back rarely is counted all the same.
func TestBusyOutlastsLongDelays(t *testing.T) {
	t.Parallel()
	var b busyTasks
	const retryIn = 6 * time.Hour
	now, busy := time.Now(), time.Duration(0)
	for range 5 {
		busy = b.bounce(taskInfo{ID: "1", Queue: "q"}, now, time.Hour, retryIn).busy
		now = now.Add(retryIn)
	}
	if busy != 4*retryIn {
		t.Errorf("busy for %v, want %v", busy, 4*retryIn)
	}
}

// TestBusyBeginsAnewAfterARun: the task ran on another server, failed, and comes back an hour later.
func TestBusyBeginsAnewAfterARun(t *testing.T) {
	t.Parallel()
	var b busyTasks
	now := time.Now()
	b.bounce(taskInfo{ID: "1", Queue: "q"}, now, time.Hour, time.Second)
	got := b.bounce(taskInfo{ID: "1", Queue: "q", Retried: 1}, now.Add(70*time.Minute), time.Hour, time.Second)
	if got != (bounce{times: 1}) {
		t.Errorf("%+v; want a first time", got)
	}
}

// TestBurnedRetryIsSuspicious: the retry was burned between two deferrals, and nothing else has happened. It is told once.
func TestBurnedRetryIsSuspicious(t *testing.T) {
	t.Parallel()
	var b busyTasks
	now, told := time.Now(), 0
	for n := range 4 {
		if b.bounce(taskInfo{ID: "1", Queue: "q", Retried: n}, now, time.Hour, time.Second).burned {
			told++
		}
		now = now.Add(time.Second)
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}

// TestBurnedRetryOfATaskThatRuns: the retry was burned between the only deferral and the run.
func TestBurnedRetryOfATaskThatRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		retried int
		later   time.Duration
		want    bool
	}{
		"burned":                {1, time.Second, true},
		"not burned":            {0, time.Second, false},
		"it has failed by then": {1, time.Hour, false},
	} {
		var b busyTasks
		now := time.Now()
		b.bounce(taskInfo{ID: "1", Queue: "q"}, now, time.Hour, time.Second)
		if got := b.ran(taskInfo{ID: "1", Queue: "q", Retried: test.retried}, now.Add(test.later), time.Second); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestBusyForgets: a task that another server has by now is not counted for ever.
func TestBusyForgets(t *testing.T) {
	t.Parallel()
	var b busyTasks
	now := time.Now()
	b.bounce(taskInfo{ID: "1", Queue: "q"}, now, time.Minute, time.Second)
	b.bounce(taskInfo{ID: "2", Queue: "q"}, now.Add(50*time.Minute), time.Minute, time.Second)
	b.bounce(taskInfo{ID: "3", Queue: "q"}, now.Add(81*time.Minute), time.Minute, time.Second)
	if _, first := b.tasks[busyTask{"q", "1"}]; first || len(b.tasks) != 2 {
		t.Errorf("%d tasks: %v", len(b.tasks), b.tasks)
	}
}
