// Real programs as receivers of alerts, and programs that do not do what they should.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { alertSchema } from '../../src/alerts/alerts.ts'
import { createCommandHook } from '../../src/alerts/receivers/command-hook.ts'
import type { Sent } from '../../src/alerts/types.ts'
import { codeOf } from '../../src/std/gateway-error.ts'
import { alert, sendTo } from '../support/alert-world.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'

async function script(text: string): Promise<string> {
  const path = join(await newFolder(), 'hook')
  await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o700 })
  return path
}

function run(
  command: readonly string[],
  { timeoutMs = 5000, stop = new AbortController().signal } = {},
): Promise<Sent> {
  return sendTo(createCommandHook(command, timeoutMs, 150), alert(), stop)
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A zombie of this container has nobody who reaps it.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch (error) {
    if (codeOf(error) === 'ESRCH' || codeOf(error) === 'ENOENT') return false
    throw error
  }
}

describe('a command', () => {
  test('gets the alert on stdin, its arguments as they are, few variables, and no secret', async () => {
    process.env['MARKED_SECRET'] = 'marked-secret'
    const folder = await newFolder()
    const path = await script(`cat >"$1/in"; env >"$1/env"; printf '%s\\n' "$2" >"$1/args"; echo done`)
    expect(await run([path, folder, '$(id) ; "x" *'])).toEqual({
      kind: 'sent',
      detail: 'Exit status 0: done',
      warning: null,
    })
    const body = alertSchema.parse(JSON.parse(readFileSync(join(folder, 'in'), 'utf8')))
    expect(body.id).toBe('alert-1')
    expect(readFileSync(join(folder, 'args'), 'utf8')).toBe('$(id) ; "x" *\n')
    const names = readFileSync(join(folder, 'env'), 'utf8').match(/^\w+/gm)
    expect(names?.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name)).toSorted()).toEqual([
      'GATEWAY_ALERT_ID',
      'LANG',
      'PATH',
    ])
  })

  test('that fails has its exit status and what it printed', async () => {
    expect(await run([await script('echo "no modem"  >&2; exit 3')])).toMatchObject({
      kind: 'failed',
      why: 'Exit status 3: no modem',
    })
    expect(await run([await script('kill -9 $$')])).toMatchObject({ why: 'The command was ended by SIGKILL' })
  })

  test('that cannot be started because no file descriptor is left fails, and nothing else does', async () => {
    const hook = new URL('../../src/alerts/receivers/command-hook.ts', import.meta.url).href
    const program = `
      import { openSync } from 'node:fs'
      const { createCommandHook } = await import(${JSON.stringify(hook)})
      const full = () => { for (;;) openSync('/dev/null') }
      try { full() } catch {}
      const sent = await createCommandHook(['/bin/true'], 1000).send(${JSON.stringify(alert())}, new AbortController().signal)
      process.stdout.write(sent.why)`
    // Node raises its limit to the hard one.
    const limited = `ulimit -n 64 && exec "$0" --input-type=module -e "$1"`
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', limited, process.execPath, program])
    expect(stdout).toBe('The command cannot be started: no file descriptor is left')
  })

  test('that cannot be started says why', async () => {
    expect(await run(['/no/such/command'])).toMatchObject({ why: expect.stringContaining('does not exist') })
    const path = join(await newFolder(), 'hook')
    await writeFile(path, 'x', { mode: 0o600 })
    expect(await run([path])).toMatchObject({ why: expect.stringContaining('may not execute it') })
    expect(await createCommandHook([path], 1000).check(AbortSignal.timeout(1000))).toMatchObject({
      kind: 'failed',
    })
    expect(await createCommandHook(['/bin/sh'], 1000).check(AbortSignal.timeout(1000))).toMatchObject({
      kind: 'sent',
    })
  })

  test('that does not read its stdin, or closes it, works', async () => {
    expect((await run([await script('exec <&-; exit 0')])).kind).toBe('sent')
  })
})

describe('a command that does not end', () => {
  test('gets SIGTERM when its time is over', async () => {
    const startedMs = performance.now()
    expect(await run([await script('exec sleep 60')], { timeoutMs: 150 })).toMatchObject({
      kind: 'failed',
      why: 'It took longer than 150 ms',
    })
    expect(performance.now() - startedMs).toBeLessThan(1500)
  })

  test('is killed with its children where it ignores SIGTERM', async () => {
    const folder = await newFolder()
    const path = await script(
      `trap '' TERM; sleep 61 & echo $! >"$1/child"; echo $$ >"$1/own"; while :; do sleep 1; done`,
    )
    const sent = await run([path, folder], { timeoutMs: 150 })
    expect(sent.kind).toBe('failed')
    const pids = ['child', 'own'].map((name) => Number(readFileSync(join(folder, name), 'utf8')))
    await eventually(() => pids.every((pid) => !runs(pid)))
  })

  test('is not waited for where a child keeps its output open', async () => {
    const folder = await newFolder()
    const startedMs = performance.now()
    expect((await run([await script(`sleep 62 & echo $! >"$1/child"; exit 0`), folder])).kind).toBe('sent')
    expect(performance.now() - startedMs).toBeLessThan(1000)
    const child = Number(readFileSync(join(folder, 'child'), 'utf8'))
    await eventually(() => !runs(child))
  })

  test('and floods its output is ended', async () => {
    expect(await run([await script('exec yes')])).toMatchObject({
      why: expect.stringMatching(/^The command was ended, because it printed more than 1048576 bytes: y y y/),
    })
  })

  test('is ended when the gateway stops', async () => {
    const stop = new AbortController()
    const folder = await newFolder()
    const running = run([await script(`echo $$ >"$1/own"; exec sleep 63`), folder], { stop: stop.signal })
    const own = join(folder, 'own')
    await eventually(() => {
      try {
        return readFileSync(own, 'utf8').endsWith('\n')
      } catch {
        return false
      }
    })
    stop.abort()
    expect((await running).kind).toBe('failed')
    await eventually(() => !runs(Number(readFileSync(own, 'utf8'))))
  })
})
