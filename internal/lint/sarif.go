package lint

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// The parts of SARIF 2.1.0 (OASIS standard) that code review tools read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifMessage       `json:"shortDescription"`
		FullDescription      sarifMessage       `json:"fullDescription"`
		Help                 sarifMessage       `json:"help"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		PhysicalLocation sarifPhysicalLocation  `json:"physicalLocation"`
		LogicalLocations []sarifLogicalLocation `json:"logicalLocations,omitempty"`
	}
	sarifPhysicalLocation struct {
		ArtifactLocation sarifArtifact `json:"artifactLocation"`
		Region           *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogicalLocation struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// WriteSARIF writes a SARIF 2.1.0 log. Files are named as on the command line, so run
// lint from the root of the repository.
func (r *Report) WriteSARIF(out io.Writer, version string) error {
	driver := sarifDriver{Name: "inbox lint", Version: version}
	index := map[string]int{}
	for i, rule := range rules {
		index[rule.ID] = i
		driver.Rules = append(driver.Rules, sarifRule{
			ID:                   rule.ID,
			ShortDescription:     sarifMessage{rule.Summary},
			FullDescription:      sarifMessage{rule.Why},
			Help:                 sarifMessage{rule.Fix},
			DefaultConfiguration: sarifConfiguration{string(rule.Severity)},
		})
	}
	results := make([]sarifResult, 0, len(r.Findings))
	for _, finding := range r.Findings {
		location := sarifLocation{PhysicalLocation: sarifPhysicalLocation{ArtifactLocation: sarifArtifact{artifactURI(finding.At.File)}}}
		if finding.At.Line > 0 {
			location.PhysicalLocation.Region = &sarifRegion{StartLine: finding.At.Line, StartColumn: finding.At.Column}
		}
		if finding.Key != "" {
			location.LogicalLocations = []sarifLogicalLocation{{"framework.messenger." + finding.Key}}
		}
		results = append(results, sarifResult{
			RuleID: finding.Rule, RuleIndex: index[finding.Rule], Level: string(finding.Severity),
			Message:   sarifMessage{r.message(finding) + ". " + finding.Fix},
			Locations: []sarifLocation{location},
		})
	}
	return writeJSON(out, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	})
}

// artifactURI is a relative reference for a relative path, and a file URI for an absolute one.
func artifactURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	escaped := (&url.URL{Path: strings.TrimPrefix(slashed, "./")}).String()
	return strings.TrimPrefix(escaped, "./")
}
