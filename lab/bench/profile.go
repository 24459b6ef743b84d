package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
)

// profiles are the files into which the run is profiled; it is not where the name is empty.
type profiles struct{ cpu, allocations, trace string }

// start begins what is asked for. What it returns ends it.
func (p profiles) start() (stop func() error, err error) {
	if p.allocations != "" {
		runtime.MemProfileRate = 1 // every one, which makes the run slower
	}
	var files []*os.File
	stop = func() error {
		pprof.StopCPUProfile()
		trace.Stop()
		errs := []error{p.writeAllocations()}
		for _, file := range files {
			errs = append(errs, file.Close())
		}
		return errors.Join(errs...)
	}
	begin := func(path string, start func(*os.File) error) {
		if path == "" || err != nil {
			return
		}
		file, failure := os.Create(path)
		if failure == nil {
			files = append(files, file)
			failure = start(file)
		}
		if failure != nil {
			err = fmt.Errorf("profile: %w", failure)
		}
	}
	begin(p.cpu, func(f *os.File) error { return pprof.StartCPUProfile(f) })
	begin(p.trace, func(f *os.File) error { return trace.Start(f) })
	return stop, err
}

func (p profiles) writeAllocations() error {
	if p.allocations == "" {
		return nil
	}
	file, err := os.Create(p.allocations)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
