//go:build integration

package promtool

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// scrapeFile is what the operator exposes of a resource of which everything is known. A
// test of internal/metrics keeps it current.
const scrapeFile = "../../internal/metrics/testdata/scrape.txt"

type sample struct {
	labels labels.Labels
	value  float64
}

// exposition reads the scrape as Prometheus does.
func exposition(t *testing.T) (samples []sample) {
	t.Helper()
	text, err := os.ReadFile(scrapeFile)
	if err != nil {
		t.Fatal(err)
	}
	reader := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry == textparse.EntrySeries {
			var read sample
			_, _, read.value = reader.Series()
			reader.Labels(&read.labels)
			samples = append(samples, read)
		}
	}
}

// labelsOf are the labels of a metric's series; none: there is no such metric.
func labelsOf(t *testing.T, name string) (names []string) {
	t.Helper()
	for _, sample := range exposition(t) {
		if sample.labels.Get("__name__") == name {
			sample.labels.Range(func(l labels.Label) { names = append(names, l.Name) })
			return names
		}
	}
	return nil
}
