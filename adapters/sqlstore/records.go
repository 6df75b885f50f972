package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kandev/reclaim/core"
	"github.com/kandev/reclaim/ports"
)

const (
	recordAge = 90 * 24 * time.Hour
	maxRecord = 4 << 20 // bytes of one record
)

// Keep implements ports.Records: every attempt, for 90 days. A record that is
// too large to be kept whole is an error and not kept. A database that is away
// is waited for while ctx lasts: the attempt will not tell it again.
func (s *Store) Keep(ctx context.Context, record core.Record) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("the record: %w", err)
	}
	if len(raw) > maxRecord {
		return fmt.Errorf("the record has %d bytes, more than %d", len(raw), maxRecord)
	}
	sum := sha256.Sum256(raw)
	return patiently(ctx, func() error {
		return s.in(ctx, func(tx *sql.Tx) error {
			now, err := s.now(ctx, tx)
			if err != nil {
				return err
			}
			if err := s.forget(ctx, tx, now.Add(-recordAge)); err != nil {
				return err
			}
			id := fmt.Sprintf("%s.%d.%s", record.Snapshot.JobID, record.Snapshot.Attempt, hex.EncodeToString(sum[:6]))
			_, err = s.changed(ctx, tx, `INSERT INTO reclaim_records (id, job_id, task_id, attempt, kept_ms, record) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
				id, record.Snapshot.JobID, record.Snapshot.TaskID, record.Snapshot.Attempt, now.UnixMilli(), string(raw))
			return err
		})
	})
}

// forget deletes the oldest records from before, some at a time: one is kept at a
// time, and no attempt pays for all that lie about.
func (s *Store) forget(ctx context.Context, tx *sql.Tx, before time.Time) error {
	old, err := column[string](ctx, s.Rows, tx, `SELECT id FROM reclaim_records WHERE kept_ms < ? ORDER BY kept_ms LIMIT 20`, before.UnixMilli())
	if err != nil || len(old) == 0 {
		return err
	}
	_, err = s.changed(ctx, tx, `DELETE FROM reclaim_records WHERE id IN (`+marks(len(old))+`)`, anys(old)...)
	return err
}

func (r *Rows) filed(ctx context.Context, where string, args ...any) ([]ports.Filed, error) {
	has, err := r.hasTable(ctx, "reclaim_records")
	if err != nil || !has {
		return nil, err
	}
	var all []ports.Filed
	err = r.each(ctx, r.db, `SELECT id, kept_ms, record FROM reclaim_records WHERE `+where, args, func(scan func(...any) error) error {
		var f ports.Filed
		var at int64
		var raw []byte
		if err := scan(&f.ID, &at, &raw); err != nil {
			return err
		}
		f.At = time.UnixMilli(at).UTC()
		record, err := core.ParseRecord(raw)
		if err != nil {
			return fmt.Errorf("the record %s: %w", f.ID, err)
		}
		f.Record = record
		all = append(all, f)
		return nil
	})
	return all, err
}

// Record implements ports.Desk.
func (d *Desk) Record(ctx context.Context, id string) (ports.Filed, error) {
	found, err := d.filed(ctx, `id = ?`, id)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("the record %.200q: %w", id, ports.ErrNotFound)
	}
	if err != nil {
		return ports.Filed{}, err
	}
	return found[0], nil
}

// RecordsOf implements ports.Desk.
func (d *Desk) RecordsOf(ctx context.Context, jobID string) ([]ports.Filed, error) {
	return d.filed(ctx, `job_id = ? ORDER BY kept_ms DESC, id`, jobID)
}
