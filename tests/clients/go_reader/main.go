// A reader of row changes by go-mysql: prints each as a line of JSON, with the GTIDs around them.
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

const (
	secondsMax    = 60
	shownBytesMax = 1000
)

type change struct {
	Gtid   string `json:"gtid,omitempty"`
	Table  string `json:"table,omitempty"`
	Change string `json:"change,omitempty"`
	Row    []any  `json:"row,omitempty"`
}

func main() {
	port := flag.Int("port", 0, "of the primary, on loopback")
	serverID := flag.Uint("server-id", 4300, "our own")
	user := flag.String("user", "", "who we are")
	start := flag.String("start", "", "GTID position to begin behind")
	file := flag.String("file", "", "binlog file to begin with, instead of a GTID position")
	until := flag.String("until", "", "GTID position to end at")
	semiSync := flag.Bool("semi-sync", false, "be a semi-synchronous replica")
	flag.Parse()
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID:        uint32(*serverID),
		Flavor:          mysql.MariaDBFlavor,
		Host:            "127.0.0.1",
		Port:            uint16(*port),
		User:            *user,
		Password:        os.Getenv("READER_PASSWORD"),
		SemiSyncEnabled: *semiSync,
		HeartbeatPeriod: time.Second,
		VerifyChecksum:  true,
	})
	defer syncer.Close()
	if err := read(begin(syncer, *start, *file), parsed(*start), parsed(*until)); err != nil {
		log.Fatal(err)
	}
}

func parsed(position string) mysql.GTIDSet {
	set, err := mysql.ParseGTIDSet(mysql.MariaDBFlavor, position)
	if err != nil {
		log.Fatal(err)
	}
	return set
}

func begin(syncer *replication.BinlogSyncer, start, file string) *replication.BinlogStreamer {
	var streamer *replication.BinlogStreamer
	var err error
	if file != "" {
		streamer, err = syncer.StartSync(mysql.Position{Name: file, Pos: 4})
	} else {
		streamer, err = syncer.StartSyncGTID(parsed(start))
	}
	if err != nil {
		log.Fatal(err)
	}
	return streamer
}

// read prints what comes behind seen, until the group of the last GTID in until has ended.
func read(streamer *replication.BinlogStreamer, seen, until mysql.GTIDSet) error {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	deadline, cancel := context.WithTimeout(context.Background(), secondsMax*time.Second)
	defer cancel()
	for {
		event, err := streamer.GetEvent(deadline)
		if err != nil {
			return err
		}
		switch body := event.Event.(type) {
		case *replication.MariadbGTIDEvent:
			if seen.Contain(until) {
				return nil
			}
			gtid := body.GTID.String()
			if err := seen.Update(gtid); err != nil {
				return err
			}
			if err := lines.Encode(change{Gtid: gtid}); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		case *replication.RowsEvent:
			if err := show(lines, body); err != nil {
				return err
			}
		case *replication.XIDEvent, *replication.QueryEvent:
			if seen.Contain(until) {
				return nil
			}
		}
	}
}

func show(lines *json.Encoder, rows *replication.RowsEvent) error {
	table := fmt.Sprintf("%s.%s", rows.Table.Schema, rows.Table.Table)
	unsigned := rows.Table.UnsignedMap()
	for _, row := range rows.Rows {
		values := make([]any, len(row))
		for column, value := range row {
			values[column] = shown(value, unsigned[column])
		}
		if err := lines.Encode(change{Table: table, Change: rows.Type().String(), Row: values}); err != nil {
			return err
		}
	}
	return nil
}

func shown(value any, unsigned bool) any {
	switch value := value.(type) {
	case nil:
		return nil
	case []byte:
		if len(value) > shownBytesMax {
			return fmt.Sprintf("%x", sha256.Sum256(value))
		}
		if utf8.Valid(value) {
			return string(value) // a TEXT
		}
		return fmt.Sprintf("%x", value)
	case string:
		if utf8.ValidString(value) {
			return value
		}
		letters := make([]rune, len(value)) // latin1
		for place := range len(value) {
			letters[place] = rune(value[place])
		}
		return string(letters)
	case int64:
		if unsigned {
			return fmt.Sprint(uint64(value))
		}
	}
	return fmt.Sprint(value)
}
