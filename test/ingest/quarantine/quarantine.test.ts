// Messages that are kept because of their device or their clock, and dead letters that are mapped again. The words are those
// of test/support/kept-steps.ts.

import { keptWords, startKept } from '../../support/kept-steps.ts'
import { stepCases } from '../../support/step-cases.ts'

const files = ['quarantine', 'quarantine-decisions', 'clock-verdicts', '../remap/remap']

stepCases(
  import.meta.filename,
  startKept,
  keptWords,
  files.map((name) => `${name}.cases.yaml`),
)
