import { chmod, readFile, writeFile } from 'node:fs/promises'
import { watch } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { createNotify } from '../../src/ops/systemd-notify.ts'
import { newFolder } from '../support/folders.ts'
import { handClock } from '../support/ops-world.ts'
import { stepCases } from '../support/step-cases.ts'

type Given = { env?: Record<string, string | null>; script?: string } | undefined
type World = Awaited<ReturnType<typeof world>>

/** A daemon that systemd has started, and a `systemd-notify` that writes down how it was called, one line a call. */
async function world(given: Given) {
  const { env: more = {}, script = 'echo "$*" >> "$CALLS"' } = given ?? {}
  const folder = await newFolder()
  const calls = join(folder, 'calls')
  await writeFile(join(folder, 'systemd-notify'), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, 'systemd-notify'), 0o755)
  await writeFile(calls, '')
  const clock = handClock()
  const usual = { NOTIFY_SOCKET: '/run/none', CALLS: calls, PATH: `${folder}:${process.env['PATH'] ?? ''}` }
  const set = Object.entries({ ...usual, ...more }).filter(([, value]) => value !== null)
  const env = Object.fromEntries(set) as NodeJS.ProcessEnv
  const lines = async () => (await readFile(calls, 'utf8')).split('\n').filter((line) => line !== '')
  return { folder, clock, lines, notify: createNotify({ clock, env }) }
}

stepCases(import.meta.filename, world, {
  ready: ({ notify }: World, status: string) => notify.ready(status),
  starting: ({ notify }: World, status: string) => notify.starting(status),
  stopping: ({ notify }: World) => notify.stopping(),
  statuses: ({ notify }: World, count: number) => {
    for (let n = 0; n < count; n += 1) notify.status(`Status ${n}`)
  },
  close: ({ notify }: World) => notify.close(),
  pass: ({ clock }: World, ms: number) => clock.move(ms),
  soon: async ({ folder, lines }: World, count: number) => {
    const watcher = watch(folder)
    try {
      for (;;) {
        const changed = new Promise((resolve) => watcher.once('change', resolve))
        if ((await lines()).length >= count) return
        await changed
      }
    } finally {
      watcher.close()
    }
  },
  calls: async ({ lines }: World, expected: string[]) => expect(await lines()).toEqual(expected),
})
