package postgres

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the operating system's user that the server runs as. PostgreSQL refuses root.
type account struct {
	credential *syscall.Credential // nil: as whoever we are
}

func findAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		return account{}, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return account{}, err
	}
	return account{credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// own gives a file or directory to the account.
func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

// attributes make a child run as the account and end with its parent: SIGQUIT is
// PostgreSQL's immediate shutdown, which takes the sessions along.
func (a account) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential, Pdeathsig: syscall.SIGQUIT}
}

// findBinaries returns the directory of the newest server binaries.
func findBinaries() (string, error) {
	candidates, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	newest, directory := 0.0, ""
	for _, candidate := range candidates {
		bin := filepath.Dir(candidate)
		version, notANumber := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64)
		if notANumber == nil && version > newest {
			newest, directory = version, bin
		}
	}
	if directory != "" {
		return directory, nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("no PostgreSQL server found: install the package postgresql, or put its initdb on PATH")
	}
	// On PATH it is often a link into the directory of the other binaries.
	resolved, err := filepath.EvalSymlinks(initdb)
	return strings.TrimSuffix(resolved, "/initdb"), err
}
