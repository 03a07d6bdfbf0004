package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mount is one line of /proc/PID/mountinfo.
type mount struct {
	point string
	kind  string
}

func mountsOf(pid string) ([]mount, error) {
	raw, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return parseMounts(string(raw)), nil
}

// parseMounts reads proc_pid_mountinfo(5): the mount point is field 5, the type follows a lone hyphen.
func parseMounts(table string) []mount {
	const point = 4
	var mounts []mount
	for line := range strings.Lines(table) {
		before, after, found := strings.Cut(strings.TrimSpace(line), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if found && len(fields) > point && len(kind) > 0 {
			mounts = append(mounts, mount{point: unescape.Replace(fields[point]), kind: kind[0]})
		}
	}
	return mounts
}

// unescape undoes what the kernel writes for white space and backslash.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// mountedSomewhere reports whether a process of this machine sees a mount at the path in its own mounts.
func mountedSomewhere(path string) (bool, error) {
	tables, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	if err != nil {
		return false, fmt.Errorf("list processes: %w", err)
	}
	for _, table := range tables {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue // the process ended meanwhile
		}
		for _, m := range parseMounts(string(raw)) {
			if m.point == path {
				return true, nil
			}
		}
	}
	return false, nil
}
