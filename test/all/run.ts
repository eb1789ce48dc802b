// run.ts: `npm run test:all`: everything that proves the product, one part after the other, each with its own time limit
// (parts.ts), and a summary at the end. Exit status 1 when a part fails or hangs.
//
//   --sample          the small sample of each part, as CI runs it
//   --only LIST       parts, by name
//   --list            what there is

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { missingPrograms, missingText } from './programs.ts'
import { parts, type Part } from './parts.ts'

type Result = {
  name: string
  end: 'passed' | 'failed' | 'hung'
  tookMs: number
  skipped: string[]
  log: string
}

const { values } = parseArgs({
  options: {
    sample: { type: 'boolean', default: false },
    only: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
})

const names = values.only?.split(',') ?? parts.map(({ name }) => name)
for (const name of names)
  if (!parts.some((part) => part.name === name))
    throw new Error(`there is no part ${name}; there are ${parts.map((part) => part.name).join(', ')}`)
const wanted = parts.filter(({ name, sample }) => names.includes(name) && (!values.sample || sample !== null))

if (values.list) for (const { name, what } of wanted) process.stdout.write(`${name.padEnd(10)} ${what}\n`)
else await runAll()

async function runAll(): Promise<void> {
  // So that `exit` is told, which ends the part.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  const folder = await mkdtemp(join(tmpdir(), 'gateway-test-all-'))
  const results: Result[] = []
  for (const part of wanted) results.push(await run(part, folder))
  process.stdout.write('\n')
  for (const { name, end, tookMs, log } of results) {
    const seconds = Math.round(tookMs / 1000)
    process.stdout.write(`${name.padEnd(10)} ${end}, ${seconds} s${end === 'passed' ? '' : `; see ${log}`}\n`)
  }
  const skipped = new Set([...results.flatMap((one) => one.skipped), ...missingPrograms().map(missingText)])
  for (const line of skipped) process.stdout.write(`${line}\n`)
  if (values.sample)
    for (const { name, what } of parts.filter(({ sample }) => sample === null).slice(2))
      process.stdout.write(`skipped: ${name} (${what}): takes long, npm run test:all has it\n`)
  process.exitCode = results.some(({ end }) => end !== 'passed') ? 1 : 0
}

async function run(part: Part, folder: string): Promise<Result> {
  const { name, whole, wholeMinutes, sample, sampleMinutes } = part
  const words = values.sample ? (sample ?? whole) : whole
  const minutes = values.sample ? sampleMinutes : wholeMinutes
  const log = join(folder, `${name}.log`)
  process.stdout.write(`\n--- ${name}: npm run ${words.join(' ')} (at most ${minutes} min)\n`)
  const startedMs = performance.now()
  // A group of its own, so that what hangs ends with all that it started.
  const child = spawn('npm', ['run', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    // `npm test` tries properties less often.
    env: { PROPERTY_RUNS: '5000', ...process.env },
  })
  const file = createWriteStream(log)
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      file.write(chunk)
      process.stdout.write(chunk)
    })
  const endGroup = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  let isHung = false
  const deadline = setTimeout(() => {
    isHung = true
    endGroup()
  }, minutes * 60_000)
  process.once('exit', endGroup)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(deadline)
  process.off('exit', endGroup)
  file.end()
  await once(file, 'close')
  const text = stripVTControlCharacters(await readFile(log, 'utf8'))
  return {
    name,
    end: isHung ? 'hung' : code === 0 ? 'passed' : 'failed',
    tookMs: performance.now() - startedMs,
    skipped: text.split('\n').filter((line) => line.startsWith('skipped: ')),
    log,
  }
}
