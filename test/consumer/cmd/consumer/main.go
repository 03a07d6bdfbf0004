// Command consumer stands for an application with an inbox: it consumes a queue of the
// Doctrine transport (the table messenger_messages) and ships one order per message (a row
// in the table shipments). It makes those two tables itself. The inbox table is made by the
// operator: without it consume fails.
//
//	consumer publish --count 20      sends orders, numbered on from the last; prints their number and ids
//	consumer consume --lose-acks 3   handles what is in the queue; prints what it did
//	consumer report                  prints how things stand
//
// The database's URL comes from the environment variable CONSUMER_DATABASE_URL. Every
// command prints one JSON object to stdout, and what goes on to stderr.
//
// Flags of all commands:
//
//	--queue NAME      the queue, default orders
//
// Flags of consume and report:
//
//	--transport NAME  the transport that the inbox records, default that of --queue
//	--schema NAME, --table NAME  the inbox table, default public and messenger_inbox
//
// Flags of publish:
//
//	--count N         number of orders, default 10
//
// Flags of consume:
//
//	--lose-acks N     the worker kills itself (SIGKILL) between the commit and the
//	                  acknowledgement of the first N messages that it handles, and is
//	                  started again; the messages come back after the redeliver timeout
//	--redeliver-timeout D  redeliver_timeout of the transport, default 1h as Symfony's;
//	                  whole seconds
//	--max-duration D  end after this time though the queue is not empty, default 1m
//
// consume ends with code 0 when every message is acknowledged, 3 when messages are left at
// the end of max-duration, and 1 after an error. It prints
//
//	{"handled":20,"skipped":3,"lostAcks":3,"failed":0,"discarded":0,"waiting":0}
//
// skipped are redeliveries that found their proof. report prints
//
//	{"shipments":20,"ordersShippedTwice":0,"proofs":20,"waiting":0}
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// urlVariable is the environment variable with the database's URL.
const urlVariable = "CONSUMER_DATABASE_URL"

// errLeft says that max-duration passed before the queue was empty.
var errLeft = errors.New("messages are left in the queue")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case errors.Is(err, errLeft):
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(3)
	default:
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	commands := map[string]func(context.Context, options) (any, error){
		"publish": publish, "consume": consume, "report": report, "work": work,
	}
	if len(arguments) == 0 || commands[arguments[0]] == nil {
		return errors.New("usage: consumer publish|consume|report [flags]; go doc ./test/consumer/cmd/consumer explains them")
	}
	o, err := parseOptions(arguments[0], arguments[1:])
	if err != nil {
		return err
	}
	result, err := commands[arguments[0]](ctx, o)
	if result != nil {
		err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(result))
	}
	return err
}
