//go:build !unix

package redistest

import "errors"

func pauseProcess(int) error { return errors.ErrUnsupported }

func resumeProcess(int) error { return errors.ErrUnsupported }
