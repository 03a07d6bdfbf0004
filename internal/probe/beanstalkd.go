package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

// beanstalkd asks for the tube's statistics, and for those of the job at its head, which
// stays where it is.
func beanstalkd(ctx context.Context, target Target) (Observation, error) {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", withPort(target.dsn.Address.Host.String(), "11300"))
	if err != nil {
		return Observation{}, err
	}
	client := beanstalk.NewConn(connection)
	defer func() { _ = client.Close() }() // nothing depends on a clean goodbye
	if deadline, limited := ctx.Deadline(); limited {
		if err = connection.SetDeadline(deadline); err != nil {
			return Observation{}, err
		}
	}
	name := cmp.Or(target.Place.Queue, target.option("tube_name", "default"))
	tube := beanstalk.NewTube(client, name)
	statistics, err := tube.Stats()
	var observation Observation
	if errors.Is(err, beanstalk.ErrNotFound) {
		observation.gap(fmt.Sprintf("there is no tube %s: beanstalkd forgets an empty tube that nobody uses, so it is either empty or its name is wrong", name))
		return observation, nil
	}
	if err != nil {
		return Observation{}, err
	}
	for key, count := range map[string]*int64{
		"current-jobs-ready": &observation.Pending, "current-jobs-delayed": &observation.Delayed,
		"current-jobs-reserved": &observation.InFlight, "current-jobs-buried": &observation.Stuck,
	} {
		if *count, err = strconv.ParseInt(statistics[key], 10, 64); err != nil {
			return Observation{}, failed(ReasonUnexpectedError, "%s: the statistics of the tube %s have no number %s", target.Broker(), name, key)
		}
	}
	err = readHeads(client, tube, &observation)
	return observation, err
}

// readHeads reads the age and the time to run of the next ready and the next buried job.
func readHeads(client *beanstalk.Conn, tube *beanstalk.Tube, observation *Observation) error {
	for _, peek := range []func() (uint64, []byte, error){tube.PeekReady, tube.PeekBuried} {
		id, _, err := peek()
		if errors.Is(err, beanstalk.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		job, err := client.StatsJob(id)
		if errors.Is(err, beanstalk.ErrNotFound) {
			continue // a worker has just finished it
		}
		if err != nil {
			return err
		}
		if age, err := strconv.ParseInt(job["age"], 10, 32); err == nil {
			// To the minute: an age in whole seconds makes the time of one job flicker.
			observation.sawOldest(time.Now().Add(-time.Duration(age) * time.Second).Truncate(time.Minute))
		}
		if ttr, err := strconv.ParseInt(job["ttr"], 10, 32); err == nil {
			timeToRun := time.Duration(ttr) * time.Second
			later(&observation.Settings.TTR, &timeToRun)
		}
	}
	return nil
}
