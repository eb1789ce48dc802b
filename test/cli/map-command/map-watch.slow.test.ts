// `map --watch` as a process, with files that are edited as editors do it.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'

const main = new URL('../../../src/main.ts', import.meta.url).pathname

const configWith = (when: string) => `
ingest: { broker: { access: { anonymous: true } } }
sources:
  - name: trucks
    preset: own.yaml
    topic: telemetry/v1/{device}
    when: ${when}
devices: { file: devices.csv }
delivery: { base_url: http://127.0.0.1:1 }
`
const presetWith = (unit: string) => `
map:
  time: { path: ts, format: ms }
  latitude: { path: lat }
  longitude: { path: lon }
  speed: { path: v, unit: ${unit} }
`
const good = '{"ts":1750000000000,"lat":48.1,"lon":2.2,"v":36}'

/** The command, with the files that it reads. `wrote` waits for new output. */
async function watching(args: (folder: string) => readonly string[], stdin = '') {
  const folder = await newFolder()
  const path = (name: string) => join(folder, name)
  await writeFile(path('gateway.yaml'), configWith('v > 0'))
  await writeFile(path('own.yaml'), presetWith('km/h'))
  await writeFile(path('devices.csv'), 'device,asset_id\ntruck-7,TRK-1\n')
  await writeFile(path('one.json'), good)
  await writeFile(path('gateway.cases.yaml'), casesWith(36))
  const child = spawn(process.execPath, [main, 'map', '--watch', ...args(folder)], { cwd: folder })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  child.stdin.end(stdin)
  return { path, replace, wrote, ended }

  /** As editors do that write another file and rename it. */
  async function replace(name: string, text: string): Promise<void> {
    await writeFile(path(`${name}.new`), text)
    await rename(path(`${name}.new`), path(name))
  }

  /** Everything since the last call, once it has `text`. */
  async function wrote(text: string, name: 'stdout' | 'stderr' = 'stdout'): Promise<string> {
    // The note is the last one of a run.
    await eventually(() => output[name].includes(text) && output.stderr.includes('Waiting for a change'))
    const found = output[name]
    output.stdout = ''
    output.stderr = ''
    return found
  }

  async function ended(signal: NodeJS.Signals): Promise<unknown[]> {
    child.kill(signal)
    return once(child, 'exit')
  }
}

const casesWith = (speed: number) => `
cases:
  - name: a truck
    topic: telemetry/v1/truck-7
    message: '${good}'
    payloads:
      - device: truck-7
        time: 1750000000000
        gps: { latitude: 48.1, longitude: 2.2, speed: ${speed}, speedUnits: KILOMETERS_PER_HOUR }
`

describe('map --watch', () => {
  test('maps the messages again after each change, and waits after a problem', async () => {
    const { path, replace, wrote, ended } = await watching(() => [
      '--config=gateway.yaml',
      '--topic=telemetry/v1/truck-7',
      'one.json',
    ])
    const first = await wrote('"payloads"')
    expect(first).toContain('"speed":36')
    expect(first).not.toContain('changed')

    await writeFile(path('gateway.yaml'), configWith('v > 40'))
    expect((await wrote('ignored')).split('\n')).toEqual([
      '',
      expect.stringMatching(/^--- \d\d:\d\d:\d\d UTC: gateway\.yaml changed$/),
      '{"source":"trucks","payloads":[],"ignored":{"reason":"when: v > 40"}}',
      '',
    ])

    await replace('gateway.yaml', configWith('v = 36'))
    const problem = await wrote('CONFIG_INVALID', 'stderr')
    expect(problem).toContain('gateway.yaml:7:5')
    expect(problem).toContain('has = instead of "==" at position 3 of "v = 36"')

    await replace('gateway.yaml', configWith('v == 36'))
    expect(await wrote('"payloads":[{')).toContain('TRK-1')

    await replace('own.yaml', presetWith('m/s'))
    expect(await wrote('own.yaml changed\n{')).toContain('"speed":129.6')

    await writeFile(path('devices.csv'), 'device,asset_id\ntruck-7,TRK-2\n')
    expect(await wrote('devices.csv changed\n{')).toContain('TRK-2')
    expect(await ended('SIGINT')).toEqual([0, null])
  })

  test('maps what stdin had, and explains it', async () => {
    const { path, wrote, ended } = await watching(
      () => ['--config=gateway.yaml', '--ndjson', '--explain'],
      `{"topic":"telemetry/v1/truck-7","payload":${good}}\n{"topic":"telemetry/v1/b","payload":{"v":0}}\n`,
    )
    expect(await wrote('source trucks: ignored')).toContain('when v > 0: true')
    await writeFile(path('gateway.yaml'), configWith('v >= 0'))
    const again = await wrote('gateway.yaml changed')
    expect(again).toContain('telemetry/v1/truck-7: source trucks: 1 payload')
    expect(again).toContain('telemetry/v1/b: source trucks: dead letter, NO_TIME')
    // That of the last run.
    expect(await ended('SIGINT')).toEqual([1, null])
  })

  test('runs the cases again', async () => {
    const { path, wrote, ended } = await watching(() => ['--config=gateway.yaml', '--test'])
    expect(await wrote('passed')).toContain('gateway.cases.yaml: 1 passed')
    await writeFile(path('gateway.cases.yaml'), casesWith(37))
    expect(await wrote('failed')).toContain('gateway.cases.yaml changed\n')
    await writeFile(path('gateway.cases.yaml'), casesWith(36))
    expect(await wrote('passed')).toContain('gateway.cases.yaml: 1 passed')
    expect(await ended('SIGINT')).toEqual([0, null])
  })

  test('is refused for messages of the daemon, and for more messages than it keeps', async () => {
    const live = await runCli(['map', '--preset', 'simulator', '--watch', '--from-tap'])
    expect([live.status, live.stderr]).toEqual([2, expect.stringContaining('--watch and --from-...')])
    const line = `{"topic":"a/b","message":"${'x'.repeat(1_000_000)}"}\n`
    const large = await runCli(['map', '--preset', 'simulator', '--watch', '--ndjson'], {
      stdin: line.repeat(17),
    })
    expect([large.status, large.stderr]).toEqual([1, expect.stringContaining('more than 16 MiB')])
  })
})
