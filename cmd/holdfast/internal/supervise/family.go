//go:build linux || darwin

package supervise

import "syscall"

// tree returns all processes below one, parents first. It leaves out the processes in except, and those below them.
func tree(pid int, except map[int]bool, childrenOf func(pid int) []int) (all []int) {
	add := func(parent int) {
		for _, child := range childrenOf(parent) {
			if !except[child] {
				all = append(all, child)
			}
		}
	}
	add(pid)
	for i := 0; i < len(all); i++ {
		add(all[i])
	}
	return all
}

// byParent returns a function that returns the children of a process, given the parent of each process.
func byParent(parents map[int]int) func(pid int) []int {
	children := make(map[int][]int)
	for child, parent := range parents {
		children[parent] = append(children[parent], child)
	}
	return func(pid int) []int { return children[pid] }
}

// kill sends a signal to processes, and returns false if there are none. A process that forks meanwhile may escape KILL,
// so the caller must repeat it. The repetition ends, because what the killed ones have left becomes a child of this
// process.
func kill(pids []int, sig syscall.Signal) bool {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return len(pids) > 0
}

// forward sends a signal to the command and to its descendants in the same process group.
func forward(command int, sig syscall.Signal) {
	targets := []int{command}
	if group, err := syscall.Getpgid(command); err == nil {
		for _, pid := range descendants(nil) {
			if other, err := syscall.Getpgid(pid); pid != command && err == nil && other == group {
				targets = append(targets, pid)
			}
		}
	}
	kill(targets, sig)
}
