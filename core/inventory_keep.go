package core

import (
	"fmt"
	"strconv"
	"strings"
)

// What each record means: a reason, a cause, a sentence, and what to do.

// count is a number of things and what they do, as people say it.
func count(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + more
}

func keepHost(r *reading, v cells) {
	if !digits(v.w(1)) {
		r.keep(ProbeFailed, ProbeError, nil, "the host does not say who we are on it")
	}
	switch v.w(2) {
	case "printf", "stat-c", "stat-f":
	default:
		r.keep(ProbeFailed, ProbeError, nil, "the host has no find and stat that list a directory as we need it")
	}
	cure := []Remedy{{What: "put git 2.20 or newer first on this account's PATH"}}
	said, isGit := strings.CutPrefix(v.t(3), "git version ")
	if !isGit {
		if said == "" || strings.Contains(said, "not found") {
			r.keep(ProbeFailed, GitTooOld, cure, "no git was found on the host")
		} else {
			r.keep(ProbeFailed, ProbeError, []Remedy{{What: "see what git says on the host", Run: "git version"}}, "git on the host does not say its version but %.200q", said)
		}
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(said, "%d.%d", &major, &minor); err != nil || major < 2 || (major == 2 && minor < 20) {
		r.keep(ProbeFailed, GitTooOld, cure, "git %q on the host is older than 2.20 and cannot be asked without writing", said)
	}
}

func keepShape(r *reading, v cells) {
	switch v.w(0) {
	case "directory":
	case "root_missing":
		r.keep(ProbeFailed, TasksMissing, nil, "the workdir root cannot be entered; a disk may not be mounted")
	case "tasks_missing":
		r.keep(ProbeFailed, TasksMissing, nil, "the directory that holds the tasks is not there; a disk may not be mounted")
	case "tasks_symlink":
		r.keep(NotACheckout, TasksIsSymlink, nil, "the directory that holds the tasks is a symbolic link, so the target lies elsewhere than its path says")
	case "symlink":
		r.keep(NotACheckout, TargetIsSymlink, nil, "the target is a symbolic link; what it points to is not ours to remove")
	case "absent":
		r.keep(NotACheckout, AlreadyAbsent, nil, "the directory is not there")
	case "other":
		r.keep(NotACheckout, NoRepository, nil, "the target is not a directory")
	case "elsewhere":
		r.keep(NotACheckout, NoRepository, nil, "the target's physical path is not the one its name says")
	case "no_repository":
		r.keep(NotACheckout, NoRepository, []Remedy{{What: "look what the directory holds; remove it by hand if nothing is wanted"}}, "the target holds no repository of its own")
	case "enclosed":
		r.keep(NotACheckout, EnclosingRepo, nil, "the target is part of a repository above it and holds none of its own")
	case "unreadable":
		r.keep(ProbeFailed, Unreadable, nil, "the target cannot be entered")
	default:
		r.odd("the shape %q", v.w(0))
	}
}

func keepIdentity(r *reading, v cells) {
	r.evidence.Manifest.Device, r.evidence.Manifest.Inode = v.w(0), v.w(1)
	if !digits(v.w(0)) || !digits(v.w(1)) {
		r.keep(ProbeFailed, ProbeError, nil, "the host does not tell the target's device and inode")
	}
}

func keepTree(r *reading, v cells) {
	r.trees++
	r.lines += v.n(2)
	if v.t(0) == "." {
		r.evidence.Entries, r.evidence.Bytes = v.n(3), v.n(4)
	}
	if !hexDigest(v.w(1)) {
		r.keep(ProbeFailed, ProbeError, nil, "no digest of %q could be taken", v.t(0))
	}
	if v.n(5) != 0 {
		r.keep(ProbeFailed, Unreadable, []Remedy{{What: "make it readable for this account, or look at it by hand"}}, "parts of %q cannot be listed", v.t(0))
	}
	if v.n(6) != 0 {
		r.keep(ProbeFailed, ForeignOwner, []Remedy{{What: "give the files to this account, or remove them with the account that owns them"}}, "%s to another account%s", count(v.n(6), "entry belongs", "entries belong"), r.shown("foreign"))
	}
	if v.n(7) != 0 {
		r.keep(ProbeFailed, Unreadable, []Remedy{{What: "make them readable for their owner"}}, "%s cannot be read%s", count(v.n(7), "file or directory", "files or directories"), r.shown("unreadable"))
	}
	if v.n(8) != 0 {
		r.keep(ProbeFailed, ProbeError, nil, "a repository's path holds a line break, which nothing here follows")
	}
	if v.n(9) != 0 {
		r.keep(DirtyWorktree, Untracked, nil, "%s not the backend's%s", count(v.n(9), "symbolic link below .kandev is", "symbolic links below .kandev are"), r.shown("kandev_link"))
	}
	if v.n(10) != 0 {
		r.keep(ProbeFailed, LockPresent, []Remedy{{What: "see whether git still runs there; if not, remove the lock"}}, "%s in the repositories%s: a git may be writing", count(v.n(10), "lock file lies", "lock files lie"), r.shown("lock"))
	}
}

func keepOutside(r *reading, v cells) {
	r.evidence.Manifest.Outside = append(r.evidence.Manifest.Outside, v.t(0))
}

func keepManifest(r *reading, v cells) {
	r.evidence.Manifest.Digest, r.evidence.Manifest.Count = v.w(0), v.n(1)
}

func keepLive(r *reading, v cells) {
	if v.w(0) == "unknown" {
		r.note("running processes could not be seen on this host")
	} else if n, ok := number(v.w(0)); !ok {
		r.odd("%q live processes", v.w(0))
	} else if n > 0 {
		r.keep(Shared, LiveProcess, []Remedy{{What: "end what works there, then have it judged again"}}, "%s working directory inside", count(n, "running process has its", "running processes have their"))
	} else {
		r.note("no process of this account works inside; other accounts' processes cannot be seen without privilege")
	}
	if v.n(2) > 0 {
		r.keep(Shared, LiveProcess, []Remedy{{What: "end the session that the pid file names"}}, "%s%s", count(v.n(2), "session process named in .kandev/sessions still runs", "session processes named in .kandev/sessions still run"), r.shown("session"))
	}
	if v.n(3) > 0 {
		r.keep(ProbeFailed, Unreadable, nil, "%s cannot be read%s", count(v.n(3), "session pid file", "session pid files"), r.shown("pidfile"))
	}
}

func keepMounts(r *reading, v cells) {
	if n, ok := number(v.w(0)); !ok {
		r.keep(ProbeFailed, MountInside, nil, "the host's mounts could not be listed")
	} else if n > 0 {
		r.keep(ProbeFailed, MountInside, []Remedy{{What: "unmount what is mounted inside"}}, "%s mounted at or below the target", count(n, "file system is", "file systems are"))
	}
}

func keepBorrowers(r *reading, v cells) {
	if v.n(0) > 0 {
		r.keep(Shared, LentObjects, []Remedy{{What: "make the borrower whole: in it, run git repack -a -d and remove objects/info/alternates"}}, "%s objects from this one%s", count(v.n(0), "other repository borrows", "other repositories borrow"), r.shown("borrower"))
	}
	if v.n(1) > 0 {
		r.keep(Shared, HostedWorktree, nil, "%s of a repository inside%s", count(v.n(1), "other directory is a checkout", "other directories are checkouts"), r.shown("dependant"))
	}
}

func keepWorktrees(r *reading, v cells) {
	if v.n(1) > 0 {
		r.keep(Shared, HostedWorktree, []Remedy{{What: "move the other checkout to a clone of its own, then git worktree remove it"}}, "a repository inside is the home of %s elsewhere%s", count(v.n(1), "worktree", "worktrees"), r.shown("hosted_worktree"))
	}
	if v.n(2) > 0 {
		r.keep(Shared, LockedWorktree, []Remedy{{What: "git worktree unlock it, if nobody needs it"}}, "%s locked%s", count(v.n(2), "worktree registered inside is", "worktrees registered inside are"), r.shown("locked_worktree"))
	}
	if v.n(3) > 0 {
		r.keep(ProbeFailed, ProbeError, []Remedy{{What: "see what the registration still holds, then git worktree prune"}}, "%s what no checkout can be asked about%s", count(v.n(3), "worktree registration inside holds", "worktree registrations inside hold"), r.shown("broken_worktree"))
	}
}

// keepBaseline keeps nothing: without its baseline the directory is judged as if
// there had been none.
func keepBaseline(r *reading, v cells) {
	switch v.w(0) {
	case "whole":
		r.note("what came with the launch is known from its baseline")
	case "absent", "changed":
		r.note("the baseline of the launch is %s, so it proves nothing", map[string]string{"absent": "gone", "changed": "not the one it recorded"}[v.w(0)])
	default:
		r.odd("a baseline that is %q", v.w(0))
	}
}

func keepRepositories(r *reading, v cells) {
	switch {
	case v.n(0) > maxRepositories:
		r.keep(ProbeFailed, ProbeError, nil, "more than %d repositories lie inside; so many are not judged", maxRepositories)
	case v.n(0) == 0:
		r.odd("no repository at all")
	}
}

func keepCheckout(r *reading, v cells) {
	root := r.at.path == "."
	look := []Remedy{{What: "see what git says there", Run: r.git("status")}}
	switch v.w(0) {
	case "itself":
	case "tracked":
		r.note("%q is a bare repository whose files are tracked by the checkout around it", r.at.path)
		if root || r.at.kind != "bare" {
			r.odd("a tracked repository that is not bare")
		}
	case "begun":
		if !root {
			r.odd("a nested repository that is only begun")
		}
		r.keep(NotACheckout, NoRepository, look, "the target's repository is not complete: it was only begun, or broken off")
	case "bare", "elsewhere":
		what := map[string]string{"bare": "says it is bare (core.bare)", "elsewhere": "has its work tree elsewhere (core.worktree)"}[v.w(0)]
		if root {
			r.keep(NotACheckout, NoRepository, look, "the target's repository %s", what)
		} else {
			r.keep(ProbeFailed, ProbeError, look, "the repository %s, so its files here cannot be judged", what)
		}
	case "unresolved":
		r.keep(ProbeFailed, ProbeError, look, "what .git points to cannot be followed")
	case "unclear":
		r.keep(ProbeFailed, ProbeError, look, "git does not accept the repository%s", r.shown("said"))
	case "too_new":
		r.keep(ProbeFailed, GitTooOld, nil, "the repository's format is beyond what is read here%s", r.shown("said"))
	case "foreign":
		r.keep(ProbeFailed, ForeignOwner, []Remedy{{What: "give the repository to the account that logs in, or have it judged as the account that owns it"}},
			"the repository belongs to another account than the one that looks")
	default:
		r.odd("a checkout that is %q", v.w(0))
	}
}

func keepRegistration(r *reading, v cells) {
	switch v.w(2) {
	case "yes":
		r.evidence.Manifest.Registrations = append(r.evidence.Manifest.Registrations, Registration{CommonDir: v.t(3), Name: v.t(4), GitDirFile: v.t(5)})
	case "no":
	default:
		r.odd("a registration that survives %q", v.w(2))
	}
	switch v.w(0) {
	case "mutual":
	case "another", "broken":
		r.keep(ProbeFailed, ProbeError, []Remedy{{What: "let git put it right, if this is the only directory of the worktree", Run: r.git("worktree repair")}}, "the worktree's registration names another directory than this one")
	default:
		r.odd("a registration that is %q", v.w(0))
	}
	switch v.w(1) {
	case "no":
	case "yes":
		r.keep(Shared, LockedWorktree, []Remedy{{What: "unlock it, if nobody needs it", Run: "git -C " + quote(v.t(3)) + " worktree unlock " + quote(r.where())}}, "the worktree is locked")
	default:
		r.odd("a registration locked %q", v.w(1))
	}
}

func keepOperations(r *reading, v cells) {
	if len(v) > 2 {
		var names []string
		for _, w := range v[2:] {
			names = append(names, w.word)
		}
		r.keep(DirtyWorktree, OperationInProgress, []Remedy{{What: "finish or abort it", Run: r.git("status")}}, "an operation stopped half-way: %s", strings.Join(names, ", "))
	}
	if v.n(0) > 0 {
		r.keep(StashPresent, Stashed, []Remedy{{What: "finish the operation; its autostash comes back", Run: r.git("status")}}, "a stopped operation holds an autostash")
	}
	if v.n(1) > 0 {
		r.keep(ProbeFailed, LockPresent, nil, "a lock file lies in the repository: a git may be writing")
	}
}

func keepSettings(r *reading, v cells) {
	if (v.n(0) != 0 && v.n(0) != 1) || v.n(1) != 0 {
		r.keep(ProbeFailed, ProbeError, nil, "the repository's configuration cannot be read, or names a filter that cannot be switched off")
	}
}

func keepFiles(r *reading, v cells) {
	if v.n(0) != 0 || v.n(1) != 0 || v.n(7) != 0 {
		r.keep(ProbeFailed, ProbeError, []Remedy{{What: "see what git says there", Run: r.git("status")}}, "git could not tell the state of the files (ls-files %d, status %d, %d lines not understood)", v.n(0), v.n(1), v.n(7))
	}
	if v.n(3) > 0 {
		r.keep(DirtyWorktree, Modified, []Remedy{{What: "commit and push, or discard", Run: r.git("status")}}, "%s from the last commit%s", count(v.n(3), "tracked file differs", "tracked files differ"), r.shown("changed"))
	}
	if v.n(4) > 0 {
		r.keep(DirtyWorktree, Modified, []Remedy{{What: "put the submodule back on its recorded commit, or commit the move", Run: r.git("submodule update")}}, "submodule pointer only: %s at another commit than recorded%s", count(v.n(4), "submodule is", "submodules are"), r.shown("pointer"))
	}
	if v.n(5) > 0 {
		r.keep(DirtyWorktree, Untracked, []Remedy{{What: "commit and push, move, or delete them", Run: r.git("status --untracked-files=all")}}, "%s%s", count(v.n(5), "untracked file", "untracked files"), r.shown("untracked"))
	}
	if v.n(6) > 0 {
		r.keep(DirtyWorktree, Ignored, []Remedy{{What: "move or delete what is ignored", Run: r.git("status --ignored")}}, "%s%s", count(v.n(6), "ignored file", "ignored files"), r.shown("ignored"))
	}
}

func keepHidden(r *reading, v cells) {
	if v.n(1) > 0 {
		r.keep(DirtyWorktree, HiddenEdit, []Remedy{{What: "see which files carry an index flag", Run: r.git("ls-files -v")}}, "%s from the index%s", count(v.n(1), "file that an index flag hides from status differs", "files that an index flag hides from status differ"), r.shown("hidden"))
	}
	if v.n(3) > 0 {
		r.keep(DirtyWorktree, Untracked, nil, "%s%s", count(v.n(3), "submodule directory that is not checked out holds files", "submodule directories that are not checked out hold files"), r.shown("gitlink"))
	}
}

func keepIndex(r *reading, v cells) {
	if v.n(0) > 0 {
		r.keep(DirtyWorktree, Modified, nil, "its index holds staged changes, though its files are checked out no more")
	}
}

func keepRemotes(r *reading, v cells) {
	if v.n(0) != 0 {
		r.keep(ProbeFailed, ProbeError, nil, "its remotes cannot be listed")
	}
	r.at.noRemote = v.n(1) == 0
	r.at.noneOutside = v.n(2) == 0
}

func keepRefs(r *reading, v cells) {
	if v.n(0) != 0 || v.n(6) != 0 || v.n(7) != 0 {
		r.keep(ProbeFailed, ProbeError, []Remedy{{What: "see what is broken", Run: r.git("fsck")}}, "its refs cannot be read whole (exit %d, %d lines not understood, %d broken)", v.n(0), v.n(6), v.n(7))
	}
	if v.n(2) > 0 {
		r.keep(StashPresent, Stashed, []Remedy{{What: "apply or drop the stash", Run: r.git("stash list")}}, "a stash is kept in refs/stash")
	}
	if samples := r.samples[r.at.index+" loose"]; v.n(5) > 0 && len(samples) > 0 && samples[0] == "annex/objects" {
		r.keep(UnpushedCommits, LocalRefs, []Remedy{{What: "see that another place has the content, then drop it here", Run: r.git("annex drop --all")}}, "git-annex keeps content here, and whether another place has it is not known")
	} else if v.n(5) > 0 {
		r.keep(UnpushedCommits, LocalRefs, []Remedy{{What: "push the tag, or delete it", Run: r.git("for-each-ref")}}, "%s that no remote is known to have%s", count(v.n(5), "ref holds an object", "refs hold objects"), r.shown("loose"))
	}
}

func keepUnpushed(r *reading, v cells) {
	if v.n(0) != 0 {
		r.keep(ProbeFailed, ProbeError, []Remedy{{What: "see what is broken", Run: r.git("fsck")}}, "its commits cannot be counted (exit %d)", v.n(0))
		return
	}
	if v.n(1) == 0 {
		return
	}
	holders := r.samples[r.at.index+" holder"]
	cause := LocalRefs
	push := Remedy{What: "push what holds them", Run: r.git("log --oneline --all --not --remotes")}
	for _, ref := range holders {
		if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			cause = OnBranch
			push.Run = r.git("push origin " + quote(branch))
			break
		}
		if ref == "HEAD" {
			cause = Detached
			push.Run = r.git("push origin HEAD:refs/heads/rescued")
		}
	}
	because := "no trusted remote-tracking ref holds"
	switch {
	case r.at.noRemote:
		cause, because = NoRemote, "no remote is configured that could hold"
		push = Remedy{What: "add a remote and push", Run: r.git("remote add origin URL")}
	case r.at.noneOutside:
		cause, because = RemoteInside, "no remote that leads outside holds"
	case r.at.kind == "submodule":
		cause = InSubmodule
	case r.at.kind == "nested", r.at.kind == "child", r.at.kind == "bare":
		cause = InNestedRepo
	}
	r.keep(UnpushedCommits, cause, []Remedy{push}, "%s %s%s", because, count(v.n(1), "commit", "commits"), r.shown("holder"))
}

func keepAbandoned(r *reading, v cells) {
	if v.n(0) != 0 {
		r.keep(ProbeFailed, ProbeError, nil, "the commits that HEAD left cannot be looked up (exit %d)", v.n(0))
	} else if v.n(1) > 0 {
		tip := "HEAD@{1}"
		if tips := r.samples[r.at.index+" abandoned"]; len(tips) > 0 {
			tip = tips[0]
		}
		r.keep(UnpushedCommits, Abandoned, []Remedy{{What: "keep it on a branch and push that", Run: r.git("branch rescued " + quote(tip))}}, "%s by reset or checkout and nothing reaches %s%s", count(v.n(1), "commit was left behind", "commits were left behind"), map[bool]string{true: "it", false: "them"}[v.n(1) == 1], r.shown("abandoned"))
	}
}
