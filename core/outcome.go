package core

import "slices"

// Outcome is what an attempt at one target came to: Removed, Skipped or Failed.
//
//sumtype:decl
type Outcome interface{ outcome() }

// Removed says that the directory and every name the removal gave it are gone,
// seen in a readable parent.
type Removed struct {
	Detail  string `json:"detail"`
	Bytes   int64  `json:"bytes"`
	Entries int64  `json:"entries"`
}

// Skipped says that the directory was kept on purpose. It is a correct result
// and never retried.
type Skipped struct {
	Finding           // the first in order of precedence
	Others  []Finding `json:"others,omitempty"`
}

// Failed says that the attempt could not be completed; the job retries it
// unless it is Final.
type Failed struct {
	Fault  Fault    `json:"fault"`
	Final  bool     `json:"final"`
	Detail string   `json:"detail"`
	Cure   []Remedy `json:"cure,omitempty"`
}

func (Removed) outcome() {}
func (Skipped) outcome() {}
func (Failed) outcome()  {}

func fail(fault Fault, detail string, cure ...Remedy) Failed {
	return Failed{Fault: fault, Final: fault.Final(), Detail: detail, Cure: cure}
}

// skip turns findings into an outcome: the first in order of precedence
// decides, the rest are told. Without any finding it still keeps.
func skip(findings ...Finding) Skipped {
	if len(findings) == 0 {
		findings = []Finding{{Reason: ProbeFailed, Cause: ProbeError, Detail: "nothing was proved about the directory"}}
	}
	ranked := slices.Clone(findings)
	slices.SortStableFunc(ranked, func(a, b Finding) int { return a.Reason.rank() - b.Reason.rank() })
	s := Skipped{Finding: ranked[0]}
	if len(ranked) > 1 {
		s.Others = ranked[1:]
	}
	return s
}
