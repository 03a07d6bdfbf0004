// Package promtool tests config/prometheus and config/grafana with Prometheus' own code:
// its promtool, and its query engine over what the operator exposes. It is a module of
// its own, since no other part needs so many dependencies; hack/dashboard-picture builds
// its Prometheus from it too.
package promtool
