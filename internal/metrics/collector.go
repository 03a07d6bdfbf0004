// Package metrics tells Prometheus of each resource: a collector that reads the newest
// snapshot of each, so that a scrape asks neither the API server nor a database, and a
// resource that is gone leaves no series behind.
package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector holds one snapshot per resource. Its zero value is ready for use, and nil
// takes everything and tells nothing.
type Collector struct {
	mutex     sync.RWMutex
	snapshots map[key]*Snapshot
}

type key struct{ namespace, name string }

// Set replaces a resource's snapshot, which must not be changed afterwards.
func (c *Collector) Set(namespace, name string, snapshot *Snapshot) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.snapshots == nil {
		c.snapshots = map[key]*Snapshot{}
	}
	c.snapshots[key{namespace, name}] = snapshot
}

// Forget drops a resource's series.
func (c *Collector) Forget(namespace, name string) {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.snapshots, key{namespace, name})
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for i := range resourceMetrics {
		descriptions <- resourceMetrics[i].desc
	}
	for i := range transportMetrics {
		descriptions <- transportMetrics[i].desc
	}
	descriptions <- conditionMetric.desc
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(series chan<- prometheus.Metric) {
	c.mutex.RLock()
	snapshots := maps.Clone(c.snapshots)
	c.mutex.RUnlock()
	for of, snapshot := range snapshots {
		send(series, resourceMetrics, snapshot, of.namespace, of.name)
		for i := range snapshot.Transports {
			transport := &snapshot.Transports[i]
			send(series, transportMetrics, transport, of.namespace, of.name, transport.Name)
		}
		for conditionType, status := range snapshot.Conditions {
			send(series, []metric[float64]{conditionMetric}, &status, of.namespace, of.name, conditionType)
		}
	}
}

func send[subject any](series chan<- prometheus.Metric, metrics []metric[subject], of *subject, labels ...string) {
	for i := range metrics {
		if value, known := metrics[i].read(of); known {
			series <- prometheus.MustNewConstMetric(metrics[i].desc, metrics[i].kind, value, labels...)
		}
	}
}

// Description describes one metric for people.
type Description struct {
	Name, Type, Help string
	Labels           []string
}

// Descriptions are those of all metrics, by name.
func Descriptions() []Description {
	all := slices.Concat(
		descriptions(resourceMetrics, "namespace", "name"),
		descriptions(transportMetrics, "namespace", "name", "transport"),
		descriptions([]metric[float64]{conditionMetric}, "namespace", "name", "condition"))
	slices.SortFunc(all, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func descriptions[subject any](metrics []metric[subject], labels ...string) []Description {
	list := make([]Description, 0, len(metrics))
	for i := range metrics {
		kind := "gauge"
		if metrics[i].kind == counter {
			kind = "counter"
		}
		list = append(list, Description{Name: prefix + metrics[i].name, Type: kind, Help: metrics[i].help, Labels: labels})
	}
	return list
}
