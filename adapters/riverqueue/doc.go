// Package riverqueue shares the cleanup jobs of one install among machines:
// River (riverqueue.com) on PostgreSQL decides which machine runs a job and when.
//
//	queue, err := riverqueue.Open(ctx, dsn, store, store.Desk().Stopped, riverqueue.Options{})
//	defer queue.Close()
//	err = queue.Run(ctx, w) // w is the embedded worker's *worker.Worker
//
// # When to choose which
//
// The embedded worker (worker.Worker.Run) is the default. It needs no more than
// a database, SQLite in a file included, and one process of it does some tens of
// jobs at once: what a job waits for is its host. Stay with it while one machine
// is enough, and wherever the backend is one process anyway.
//
// Choose River when a machine may die and another must go on without anybody
// coming, when hosts are reached from different places, or when one machine
// cannot hold the connections. More machines help until every host has as many
// jobs as it may; from then on they wait for the hosts. `reclaim work` and
// `reclaim serve` choose by the DSN: postgres:// is River, sqlite: is not.
//
// Both run the same attempt (worker.Worker.Attempt) over the same rows and may
// run at the same time on one database; an embedded worker beside River must be
// given Queue.Jobs, or it does not see the cap.
//
// # What River knows
//
// Nothing that is needed. The row of a job in task_resource_cleanup_jobs is the
// record and the fence: an attempt is leased by a compare-and-set that counts
// it, every later write names it, and whoever has lost the lease writes nothing
// and begins no removal. A River job only says "look at this row": one at a time
// for an operation, due when the row is, following core's delays and never
// River's own. Where it runs twice, because River took a slow machine for a dead
// one, the second run finds the row leased or ended.
//
// So River's side may be lost, wrong or late, and every few seconds one machine
// puts it right by the rows, in the database's time: a row without a River job
// gets one; a row that is due is not left waiting; a River job whose machine
// died runs again as soon as the row's lease is stale, not by its age; an
// un-archive or stop-all cancels, also what is at work and has not begun a
// removal. A cancelled River job comes back when its row is still open. The
// clocks of the machines do not count: River is given the database's, carried on
// by the monotonic clock.
//
// # The cap of a host
//
// At most Options.PerHost jobs are in flight on a host, over all machines. A slot
// is a row in a table beside River's, taken in the transaction of the lease,
// renewed by its heartbeat and given back at the end of the attempt. Not an
// advisory lock: those are gone when PostgreSQL restarts, while the jobs go on,
// and a machine that stands still holds them for ever. A slot that was not
// renewed for Options.Stale is free, and by then its machine, if it lives, has
// put the job down. What it had sent to the host may still end there: a script
// of another attempt can overlap with it, once, and the host's own lock decides
// between two removals.
//
// Jobs that find their host full sleep and are called, oldest first, when a slot
// comes back, so that five hundred jobs of a host that swallows packets cost the
// others nothing.
//
// # Beside a host that uses River itself
//
// River's tables and ours stand in a schema of their own (reclaim_river, or
// <schema>_river where the install is not in public): they are made there, and
// nothing outside is created, altered or read. River names its channels and
// elects its leader by schema, so the two never hear of each other; kind and
// queue are called reclaim_cleanup and reclaim also for people who look at both.
// Only advisory locks share one number space in a database: ours are 64-bit
// hashes of names that begin with "reclaim".
//
// A backend that embeds the phase needs none of this: its own River job calls
// job.Phase.Run, as any queue would, and retries by job.Final and
// core.RetryAfter. It must keep what this package keeps: the row's
// compare-and-set decides who may write, and a River job that is rescued by age
// is not a reason to begin.
//
// An account that may not create schemas can be given one that is there and its
// own. PgBouncer in transaction mode has no LISTEN; connect past it. Connections
// of the store should carry idle_in_transaction_session_timeout, so that a
// machine that stands still within a transaction does not hold the others up.
package riverqueue
