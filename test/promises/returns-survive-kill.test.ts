// A gateway is killed at each moment of storing payloads in a queue of the server that their messages came from. Each
// payload is in the spool or there.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../support/folders.ts'
import { payloads, scenarios, type Scenario } from '../support/killable-returns.ts'
import { openSpoolWorld } from '../support/open-spool.ts'
import { payloadNamed } from '../support/spool-world.ts'

const momentsMax = 60
const idsOf = (names: readonly string[]) => names.map((name) => payloadNamed(name).payloadId as string)

async function runKilled(scenario: Scenario, killAt: number, folder: string): Promise<boolean> {
  const program = join(import.meta.dirname, '../support/killable-returns.ts')
  const child = spawn(process.execPath, [program, scenario, String(killAt), folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  if (signal === 'SIGKILL') return true
  if (code !== 0) throw new Error(`it ended with ${code ?? signal}`)
  return false
}

async function inSpool(folder: string): Promise<string[]> {
  const { spool } = await openSpoolWorld({ path: join(folder, 'spool') })
  const found: string[] = []
  await spool.eachStored(
    { payload: (id) => void found.push(id), message: null },
    new AbortController().signal,
  )
  const { problems } = await spool.check(new AbortController().signal)
  expect(problems).toEqual([])
  for (const { appended, settled, open } of spool.lanes()) expect(appended).toBe(settled + open)
  return found
}

describe('kill -9 while payloads are parked', () => {
  test.each(scenarios)('loses nothing: %s', { timeout: 400_000 }, async (scenario) => {
    let moments = 0
    let twice = 0
    for (let killAt = 1; ; killAt += 1) {
      if (killAt > momentsMax) throw new Error('it has more moments than are tried')
      const folder = await newFolder()
      if (!(await runKilled(scenario, killAt, folder))) break
      moments += 1
      const engine = (await readFile(join(folder, 'engine'), 'utf8').catch(() => '')).split('\n')
      const found = await inSpool(folder)
      for (const id of idsOf(payloads)) {
        const places = [...found, ...engine].filter((one) => one === id).length
        expect([killAt, id, places]).toEqual([killAt, id, places > 1 ? places : 1])
        if (places > 1) twice += 1
      }
    }
    // Two for each write of the spool and one for each time that something was stored in the engine.
    expect(moments).toBeGreaterThan(2)
    expect(twice).toBeGreaterThan(0)
  })
})
