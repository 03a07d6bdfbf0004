package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/messaginginbox/operator/test/faults/brokers"
)

// check is one claim about the contract, tried.
type check struct {
	// name of the fault.
	name string
	// expected says what must happen.
	expected string
	// happened says what did.
	happened string
	// passed says whether both agree.
	passed bool
}

// verdict makes a check of what happened.
func verdict(name, expected string, passed bool, format string, arguments ...any) check {
	return check{name: name, expected: expected, happened: fmt.Sprintf(format, arguments...), passed: passed}
}

// journal prints checks and remembers whether all passed.
type journal struct {
	mutex          sync.Mutex
	out            io.Writer
	passed, failed int
}

func (j *journal) add(kind brokers.Kind, c check) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	word := "PASS"
	if c.passed {
		j.passed++
	} else {
		j.failed++
		word = "FAIL"
	}
	_, _ = fmt.Fprintf(j.out, "%s  %s: %s\n      expected: %s\n      happened: %s\n", word, kind, c.name, c.expected, c.happened)
}
