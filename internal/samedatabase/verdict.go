package samedatabase

import "fmt"

// Reasons of a verdict. They are those of the condition TransactionShared.
const (
	ReasonShared        = "SharedTransaction"
	ReasonReplica       = "Replica"       // a read-only copy that follows a primary
	ReasonReadOnly      = "ReadOnly"      // the right database, whose transactions cannot write
	ReasonOtherServer   = "OtherServer"   // another cluster
	ReasonOtherDatabase = "OtherDatabase" // another database of the same cluster
	ReasonClone         = "Clone"         // a copy of the database, such as a restored backup
	ReasonOtherTable    = "OtherTable"    // the search_path finds a table of another schema
	ReasonTableMissing  = "TableMissing"  // the inbox's own connection finds no table
)

// Verdict says whether the handlers' transactions can hold the inbox's records.
type Verdict struct {
	// Shared is true when both connections reach the same table of the same database.
	Shared bool
	// Reason is one of the Reason constants.
	Reason string
	// Message says what was seen and what to change.
	Message string
}

// Judge decides by the lock. System identifiers and names only say which kind of another
// database it is.
func Judge(o Observation) Verdict {
	switch {
	case o.Handler.InRecovery:
		return not(ReasonReplica, "the server%s is a read-only replica (in recovery), on which no handler can record a message: point the URL at the primary", at(o.Handler))
	case !o.LockRefused:
		return judgeOther(o)
	case o.Handler.ReadOnly:
		return not(ReasonReadOnly, "it is the inbox's database, but transactions are read-only there (default_transaction_read_only is on for this role, this database or the whole server): turn it off")
	case o.Inbox.Table == 0:
		return not(ReasonTableMissing, "it is the inbox's database, which has no inbox table yet")
	case o.Handler.Found != 0 && o.Handler.Found != o.Inbox.Table:
		return not(ReasonOtherTable, "it is the inbox's database, but the search_path of this connection finds the table %s before the inbox: "+
			"a handler that does not write the schema records there. Set the role's search_path, or drop that table", o.Handler.FoundName)
	case o.Handler.Found == 0:
		return Verdict{true, ReasonShared, "the same running database; the inbox's schema is not in the search_path of this connection, so the application must write it"}
	default:
		return Verdict{true, ReasonShared, "the same running database and table"}
	}
}

// judgeOther names the kind of another database: the lock was granted a second time.
func judgeOther(o Observation) Verdict {
	inbox, handler := o.Inbox, o.Handler
	const advice = "a handler's commit there leaves no proof in the inbox. Point the URL at the inbox's database, or spec.database.urlSecretRef at the handlers'"
	identified := inbox.SystemIdentifier != "" && handler.SystemIdentifier != ""
	switch {
	case identified && inbox.SystemIdentifier != handler.SystemIdentifier:
		return not(ReasonOtherServer, "database %q%s is on another server (system identifier %s, and the inbox's is %s): %s",
			handler.Database, at(handler), handler.SystemIdentifier, inbox.SystemIdentifier, advice)
	case identified && inbox.DatabaseOID != handler.DatabaseOID:
		return not(ReasonOtherDatabase, "database %q%s is another one than the inbox's, %q: %s", handler.Database, at(handler), inbox.Database, advice)
	case identified:
		return not(ReasonClone, "database %q%s is a copy of the inbox's: same system identifier (%s) and same name, but an advisory lock held in the inbox's database%s is free there, "+
			"as after a restored backup or a promoted replica: %s", handler.Database, at(handler), handler.SystemIdentifier, at(inbox), advice)
	default:
		return not(ReasonOtherServer, "database %q%s is not the inbox's, %q%s: an advisory lock held there is free here (which kind of copy it is cannot be told: the role may not execute pg_control_system()): %s",
			handler.Database, at(handler), inbox.Database, at(inbox), advice)
	}
}

func not(reason, format string, arguments ...any) Verdict {
	return Verdict{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

func at(side Side) string {
	if side.Address == "" {
		return ""
	}
	return " at " + side.Address
}
