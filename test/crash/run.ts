// run.ts: many kills, as a command: `npm run test:crash -- [--kills N] [--power-cuts N] [--seed N]
// [--moment start|ack|answer|drained] [--service-down]`.
//
// Runs of a bounded number of kills follow each other, each with its own spool and seed: a run keeps every
// message in memory until its rules are checked. Prints a line for each kill and a JSON report at the end.
// Exit status 1 if a rule was broken. The seed determines moments and faults; the timing in between is random.

import { parseArgs } from 'node:util'
import { moments, runCrashes, whyNoPowerCuts, type CrashReport } from './harness.ts'

const deathsPerRun = 100

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    'power-cuts': { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    moment: { type: 'string' },
    'service-down': { type: 'boolean', default: false },
  },
})

const noPower = await whyNoPowerCuts()
let killsLeft = countOf(values.kills)
let cutsLeft = noPower === null ? countOf(values['power-cuts'] ?? String(Math.ceil(killsLeft / 4))) : 0
if (noPower !== null) say(`no power cuts: ${noPower}`)
const moment = moments.find((one) => one === values.moment)

const reports: CrashReport[] = []
for (let seed = countOf(values.seed); killsLeft + cutsLeft > 0; seed += 1) {
  const kills = Math.min(killsLeft, deathsPerRun)
  const powerCuts = Math.min(cutsLeft, deathsPerRun - kills + Math.ceil(deathsPerRun / 4))
  killsLeft -= kills
  cutsLeft -= powerCuts
  say(`seed ${seed}: ${kills} kills and ${powerCuts} power cuts`)
  const report = await runCrashes({
    seed,
    kills,
    powerCuts,
    progress: say,
    serviceDown: values['service-down'],
    ...(moment === undefined ? {} : { moment }),
  })
  reports.push(report)
  process.stdout.write(`${JSON.stringify(report)}\n`)
}

const violations = reports.flatMap(({ seed, violations }) =>
  violations.map((what) => `seed ${seed}: ${what}`),
)
for (const violation of violations) say(violation)
process.exitCode = violations.length > 0 ? 1 : 0

function countOf(text: string): number {
  const count = Number(text)
  if (!Number.isSafeInteger(count) || count < 0) throw new Error(`${text} is no count`)
  return count
}

function say(line: string): void {
  process.stderr.write(`${line}\n`)
}
