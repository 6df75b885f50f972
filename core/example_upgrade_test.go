package core_test

import (
	"fmt"

	"github.com/kandev/reclaim/core"
)

// What a host does at a launch: the metadata of the executors_running row. What the
// task says about the switch is not heard.
func ExampleProject() {
	metadata, err := core.Project(core.Projected{
		TaskID:     "t-1",
		Task:       []byte(`{"branch": "fix-login", "ssh_reclaim_task_dir": "true"}`),
		ExecutorID: "ex-1",
		Executor:   []byte(`{"ssh_host": "build1", "ssh_user": "dev", "ssh_host_fingerprint": "SHA256:x2FjrJnIIcAkzqEmBQpmOLiFEAgLBw1bQqYuXgmqWbA"}`),
		Profile:    &core.Profile{ID: "p-1", Config: []byte(`{"ssh_workdir_root": "~/.kandev", "ssh_reclaim_task_dir": "false"}`)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, err := core.ParseLaunch(metadata)
	fmt.Println(launch.Target.Host, launch.Profile, launch.Target.Enabled, err)
	// Output: build1 p-1 false <nil>
}

// What a host does at an archive or a delete: the snapshot of the cleanup job, made
// from the metadata of every executors_running row of the task.
func ExampleCapture() {
	rows := []struct{ session, metadata string }{
		{"s-2", `{"ssh_host": "build1", "ssh_remote_task_dir": "/home/dev/.kandev/tasks/fix-login", "ssh_workdir_root": "~/.kandev", "ssh_reclaim_task_dir": "true"}`},
		{"s-1", `{"ssh_host": "build1", "ssh_remote_task_dir": "/home/dev/.kandev/tasks/fix-login", "ssh_workdir_root": "~/.kandev", "ssh_reclaim_task_dir": ""}`},
	}
	var captured core.Captured
	for _, row := range rows {
		launch, err := core.ParseLaunch([]byte(row.metadata))
		if err != nil {
			captured.Unreadable++ // it may have led to any directory: none is opted in then
			continue
		}
		launch.SessionID = row.session
		captured.Launches = append(captured.Launches, launch)
	}
	snapshot, err := core.Capture(captured)
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := core.ParseJobSnapshot(snapshot)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, target := range job.Targets() {
		fmt.Println(target.Target.TaskDir, target.Target.Enabled) // every launch must have opted in
	}
	// Output: /home/dev/.kandev/tasks/fix-login false
}
