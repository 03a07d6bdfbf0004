package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/messaginginbox/operator/test/consumer"
)

// counters is what consume prints.
type counters struct {
	Handled   int   `json:"handled"`
	Skipped   int   `json:"skipped"`
	LostAcks  int   `json:"lostAcks"`
	Failed    int   `json:"failed"`
	Discarded int   `json:"discarded"`
	Waiting   int64 `json:"waiting"`
}

// consume runs a worker in a process of its own, and another one each time it was killed.
func consume(ctx context.Context, o options) (result any, err error) {
	limited, cancel := context.WithTimeout(ctx, o.maxDuration)
	defer cancel()
	var total counters
	for {
		killed, failure := superviseWorker(limited, o, &total)
		if limited.Err() != nil {
			break
		}
		if failure != nil {
			return total, failure
		}
		if !killed {
			return total, nil
		}
		total.LostAcks++
		o.loseAcks--
		fmt.Fprintln(os.Stderr, "the worker was killed before it could acknowledge; another one starts")
	}
	broker, _, err := open(context.WithoutCancel(ctx), o)
	if err != nil {
		return total, err
	}
	defer func() { _ = broker.Close(context.WithoutCancel(ctx)) }() // nothing was written
	if total.Waiting, err = broker.Waiting(context.WithoutCancel(ctx)); err != nil || total.Waiting == 0 {
		return total, err
	}
	return total, errLeft
}

// superviseWorker runs one worker until it ends, and says whether it was killed.
func superviseWorker(ctx context.Context, o options, total *counters) (killed bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	command := exec.CommandContext(ctx, self, "work", "--queue", o.queue, "--transport", o.transport, // #nosec G204 -- ourselves
		"--schema", o.inbox.Schema, "--table", o.inbox.Table,
		"--lose-acks", strconv.Itoa(o.loseAcks), "--redeliver-timeout", o.redeliverTimeout.String())
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the supervisor
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe() // open for as long as we live
	if err != nil {
		return false, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return false, errors.Join(err, stdin.Close())
	}
	if err = command.Start(); err != nil {
		return false, fmt.Errorf("start the worker: %w", err)
	}
	err = total.add(stdout)
	err = errors.Join(err, command.Wait())
	status, ok := command.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() && status.Signal() == syscall.SIGKILL && o.loseAcks > 0 {
		return true, nil
	}
	return false, err
}

// add counts the events of a worker.
func (c *counters) add(events io.Reader) error {
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("the worker said %q: %w", lines.Text(), err)
		}
		switch e.Outcome {
		case consumer.Handled:
			c.Handled++
		case consumer.Skipped:
			c.Skipped++
			fmt.Fprintln(os.Stderr, "a message came back; the inbox has its proof, so it is not handled again")
		case failed:
			c.Failed++
			fmt.Fprintf(os.Stderr, "the handler failed on message %s: %s\n", e.MessageID, e.Error)
		case consumer.Discarded:
			c.Discarded++
		}
	}
	return lines.Err()
}
