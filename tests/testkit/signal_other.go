//go:build !unix

package testkit

import "errors"

func pauseProcess(int) error { return errors.ErrUnsupported }

func resumeProcess(int) error { return errors.ErrUnsupported }
