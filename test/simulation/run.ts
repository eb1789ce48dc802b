// run.ts: `npm run simulate`: many seeds, in processes of their own.
//
//   --seeds N         how many (default 200)
//   --seed N          the first one (default 1)
//   --jobs N          processes at a time (default 1)
//   --without LIST    kinds of faults that are left out, and `--devices N` a smaller fleet: a run that failed, made
//                     smaller
//   --week            a small depot over seven days (week.ts)
//   --safety S        a safety phase of so many seconds
//   --shrink          makes the first seed that fails smaller, and prints the shortest command
//   --theme NAME      the seeds of a theme alone (themes.ts), so many of them
//   --regressions     the seeds of regressions.ts instead
//   --mutation NAME   with a mistake in the daemon (mutations.ts)
//   --search          ends with the first seed that fails
//   --each            a line for each seed, also for those that hold
//   --log             the log of a seed that fails, and of a single one
//   --reach           the states that were never reached

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { keepCompiledCode } from '../support/compiled-code.ts'
import { createRandom } from '../support/random.ts'
import { drawPlan } from './plan.ts'
import { regressions } from './regressions.ts'
import type { SeedReport } from './seed-process.ts'
import { isTheme } from './themes.ts'

keepCompiledCode()
// `| head` has read enough.
process.stdout.on('error', () => process.exit(1))

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '1' },
    without: { type: 'string', default: '' },
    devices: { type: 'string', default: '' },
    safety: { type: 'string', default: '' },
    week: { type: 'boolean', default: false },
    theme: { type: 'string', default: '' },
    shrink: { type: 'boolean', default: false },
    regressions: { type: 'boolean', default: false },
    mutation: { type: 'string', default: '' },
    search: { type: 'boolean', default: false },
    log: { type: 'boolean', default: false },
    reach: { type: 'boolean', default: false },
    each: { type: 'boolean', default: false },
  },
})

/** What lives for one seed is not copied again and again. */
const youngHeap = '--max-semi-space-size=64'
/** Seeds in one process: its start is paid once, and jobs end at about the same time. */
const seedsInProcess = 500
/** Of one seed, and of the start of its process, where other work leaves a twentieth of a processor. */
const seedMs = values.week ? 900_000 : 300_000

const first = Number(values.seed)
const count = Number(values.seeds)
const theme = values.theme
const jobs = Math.min(Number(values.jobs), availableParallelism())
const ranges: { first: number; count: number; seeds?: number[] }[] = []
if (values.regressions)
  ranges.push({ first: 0, count: regressions.length, seeds: regressions.map(({ seed }) => seed) })
else if (theme !== '') {
  const seeds = seedsOf(theme)
  for (let at = 0; at < count; at += seedsInProcess)
    ranges.push({
      first: 0,
      count: Math.min(seedsInProcess, count - at),
      seeds: seeds.slice(at, at + seedsInProcess),
    })
} else
  for (let at = 0; at < count; at += seedsInProcess)
    ranges.push({ first: first + at, count: Math.min(seedsInProcess, count - at) })

const failed: SeedReport[] = []
let hanging = 0
const sums = { seeds: 0, messages: 0, starts: 0, virtualMs: 0, cpuMs: 0 }
const reached = new Map<string, number>()
const startedMs = performance.now()

await Promise.all(Array.from({ length: jobs }, work))

const tookS = (performance.now() - startedMs) / 1000
const perSeed = (sum: number) => (sum / sums.seeds).toFixed(1)
process.stdout.write(
  `${sums.seeds + hanging} seeds, ${failed.length + hanging} failed, ${tookS.toFixed(1)} s, ${(sums.seeds / tookS).toFixed(1)} seeds a second; ` +
    `each: ${perSeed(sums.messages)} messages, ${perSeed(sums.starts)} starts, ${perSeed(sums.virtualMs / 60_000)} min, ${perSeed(sums.cpuMs)} ms of a processor\n`,
)
if (values.reach) await printReach()
if (values.shrink && failed[0] !== undefined) await shrink(failed[0].seed)
process.exitCode = failed.length + hanging > 0 ? 1 : 0

function seedsOf(theme: string): number[] {
  if (!isTheme(theme)) throw new Error(`There is no theme "${theme}".`)
  const seeds: number[] = []
  for (let seed = first; seeds.length < count; seed += 1)
    if (drawPlan(seed, createRandom(seed)).theme === theme) seeds.push(seed)
  return seeds
}

/** Everything that the daemon can report, and what else was met, with how often. */
async function printReach(): Promise<void> {
  const { eventTable } = await import('../../src/domain/event.ts')
  const { conditionCatalogue } = await import('../../src/ops/conditions/condition-catalogue.ts')
  const states = [
    ...Object.keys(eventTable).map((kind) => `event ${kind}`),
    ...Object.keys(conditionCatalogue).map((code) => `condition ${code}`),
  ]
  const met = states.filter((state) => reached.has(state))
  process.stdout.write(`${met.length} of ${states.length} events and conditions reached\n`)
  for (const state of [...new Set([...states, ...reached.keys()])].sort())
    process.stdout.write(`${(reached.get(state)?.toString() ?? 'never').padStart(8)} ${state}\n`)
}

async function work(): Promise<void> {
  for (let range = ranges.shift(); range !== undefined; range = ranges.shift()) {
    await runRange(range)
    if (values.search && failed.length + hanging > 0) return
  }
}

/** A process with the simulated machine. */
function start(script: string, range: object, stdout: 'pipe' | 'inherit') {
  const path = (name: string) => join(import.meta.dirname, name)
  return spawn(process.execPath, ['--no-warnings', youngHeap, '--import', path('hooks.ts'), path(script)], {
    env: {
      ...process.env,
      SIMULATION: JSON.stringify({
        ...range,
        isWeek: values.week,
        isSearch: values.search,
        without: values.without.split(',').filter((kind) => kind !== ''),
        devices: values.devices === '' ? null : Number(values.devices),
        safetyS: values.safety === '' ? null : Number(values.safety),
        log: values.log,
      }),
      SIMULATION_MUTATION: values.mutation,
    },
    stdio: ['ignore', stdout, 'inherit'],
  })
}

async function shrink(seed: number): Promise<void> {
  await once(start('shrink-process.ts', { first: seed }, 'inherit'), 'exit')
}

async function runRange(range: (typeof ranges)[number]): Promise<void> {
  const { first, count, seeds = Array.from({ length: count }, (_, index) => first + index) } = range
  const child = start('seed-process.ts', { first, count, seeds }, 'pipe')
  const ended = once(child, 'exit')
  let next = 0
  // A turn that never ends keeps virtual time from going on, and the process from noticing.
  const kill = () => void child.kill('SIGKILL')
  let watchdog = setTimeout(kill, seedMs)
  for await (const line of createInterface({ input: child.stdout! })) {
    clearTimeout(watchdog)
    watchdog = setTimeout(kill, seedMs)
    next += 1
    const report = JSON.parse(line) as SeedReport
    sums.seeds += 1
    sums.messages += report.messages
    sums.starts += report.starts
    sums.virtualMs += report.virtualMs
    sums.cpuMs += report.cpuMs
    for (const [state, times] of report.reached) reached.set(state, (reached.get(state) ?? 0) + times)
    if (report.wrong.length > 0) failed.push(report)
    if (report.wrong.length > 0 || values.each || count === 1) print(report)
  }
  clearTimeout(watchdog)
  const [code, signal] = (await ended) as [number | null, string | null]
  if (code !== 0 && next < count) {
    const why =
      signal === 'SIGKILL'
        ? `did not end within ${seedMs / 1000} s`
        : `ended its process with ${code ?? signal}`
    // A seed that has failed may have spoilt the process, too.
    const isTold = next > 0 && failed.at(-1)?.seed === seeds[next - 1]
    if (!isTold) {
      process.stdout.write(`seed ${seeds[next]} ${why}\n`)
      hanging += 1
    }
    return
  }
  const isFound = values.search && failed.length > 0
  if (code !== 0 || (next !== count && !isFound))
    throw new Error(`the process of the seeds from ${first} ended with ${code ?? signal}`)
}

function print({ seed, hash, wrong, messages, starts, virtualMs, events, cpuMs, log }: SeedReport): void {
  const minutes = (virtualMs / 60_000).toFixed(1)
  process.stdout.write(
    `seed ${seed} ${hash}: ${messages} messages, ${starts} starts, ${minutes} min, ${events} events, ${cpuMs.toFixed(0)} ms\n`,
  )
  for (const what of wrong.slice(0, 10)) process.stdout.write(`  ${what}\n`)
  if (values.log) process.stdout.write(log.join(''))
}
