import { appendFile, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { GatewayEvent } from '../../../src/domain/event.ts'
import { createAudit, readAudit } from '../../../src/ops/audit/audit.ts'
import type { Caller } from '../../../src/ops/types.ts'
import { newFolder } from '../../support/folders.ts'
import { handClock } from '../../support/ops-world.ts'

const alice: Caller = { via: 'socket', user: 'root', sudoUser: 'alice' }

function auditIn(folder: string, bytesMax = 1024 ** 2) {
  const clock = handClock()
  const events: GatewayEvent[] = []
  const audit = createAudit({ clock, emit: (event) => void events.push(event) }, { folder, bytesMax })
  const change = async (name: string, value: unknown = { payloads: 1 }, status = 200) => {
    const end = await audit.begin(name, 'all=1', alice)
    clock.move(5)
    await end({ status, value })
  }
  return { audit, clock, events, change }
}

const all = { limit: 1000 }
const names = async (folder: string) => (await readAudit(folder, all)).changes.map(({ change }) => change)

describe('the audit log', () => {
  test('says who changed what, how much, and with which outcome; newest first, also after a restart', async () => {
    const folder = await newFolder()
    const first = auditIn(folder)
    await first.change('dead-letters/purge', { deadLetters: 12, dryRun: false, groups: [1, 2], why: 'x' })
    await first.audit.close()
    const second = auditIn(folder)
    await second.change('reload', { code: 'CONFIG_INVALID', what: 'W.' }, 422)
    const { changes, more, damaged } = await readAudit(folder, all)
    expect([more, damaged]).toEqual([false, 0])
    expect(changes).toMatchObject([
      { change: 'reload', outcome: 'refused', status: 422, result: { code: 'CONFIG_INVALID' } },
      {
        change: 'dead-letters/purge',
        request: 'all=1',
        by: alice,
        outcome: 'done',
        result: { deadLetters: 12, dryRun: false, groups: 2, why: 'x' },
        tookMs: 5,
      },
    ])
    expect(second.events).toMatchObject([
      { kind: 'change_made', by: 'root (sudo: alice), as claimed on the socket', outcome: 'refused' },
    ])
    expect((await stat(join(folder, 'audit.ndjson'))).mode & 0o777).toBe(0o600)
  })

  test('is read from its end, in blocks: as much as is asked for', async () => {
    const folder = await newFolder()
    const { change } = auditIn(folder)
    for (let n = 0; n < 150; n += 1) await change(`change-${n}`, { note: 'x'.repeat(400 + n) })
    await appendFile(join(folder, 'audit.1.ndjson'), await readFile(join(folder, 'audit.ndjson')))
    const newest = Array.from({ length: 150 }, (_, n) => `change-${149 - n}`)
    expect(await names(folder)).toEqual([...newest, ...newest])
    const { changes, more } = await readAudit(folder, { limit: 3 })
    expect([changes.map(({ change: name }) => name), more]).toEqual([newest.slice(0, 3), true])
    expect(changes[0]).toMatchObject({ outcome: 'done', status: 200 })
  })

  test('has a change before it begins, so that a crash does not hide it', async () => {
    const folder = await newFolder()
    const { audit } = auditIn(folder)
    await audit.begin('batches/drop', 'all=1', alice)
    expect((await readAudit(folder, all)).changes).toMatchObject([
      { change: 'batches/drop', outcome: 'unknown', status: null, tookMs: null },
    ])
  })

  test('stays below its limit; only the oldest changes are deleted', async () => {
    const folder = await newFolder()
    const { change } = auditIn(folder, 16_384)
    for (let n = 0; n < 200; n += 1) await change(`change-${n}`)
    const sizes = await Promise.all(
      (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size),
    )
    expect(sizes.length).toBe(2)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(16_384)
    const kept = await names(folder)
    expect(kept.length).toBeGreaterThan(20)
    expect(kept).toEqual(kept.map((_, n) => `change-${199 - n}`))
    expect((await readAudit(folder, { limit: 3 })).more).toBe(true)
  })

  test('with a line that a crash cut goes on with the next line', async () => {
    const folder = await newFolder()
    await auditIn(folder).change('first')
    await appendFile(join(folder, 'audit.ndjson'), '{"at":1,"id":"cut')
    await auditIn(folder).change('second')
    expect(await names(folder)).toEqual(['second', 'first'])
    expect((await readAudit(folder, all)).damaged).toBe(1)
  })

  test('that cannot be written is reported, and the change goes on; its lines are written when that is possible', async () => {
    const folder = join(await newFolder(), 'spool')
    const { audit, change, events } = auditIn(folder)
    await change('first')
    expect([...audit.states()]).toMatchObject([{ code: 'AUDIT_LOG_FAILED', path: folder }])
    await mkdir(folder)
    await change('second')
    expect([...audit.states()]).toEqual([])
    expect(events.map(({ kind }) => kind)).toEqual(['change_made', 'change_made'])
    expect(await names(folder)).toEqual(['second', 'first'])
  })

  test('is limited to a range of time', async () => {
    const folder = await newFolder()
    const { change, clock } = auditIn(folder)
    await change('first')
    const since = clock.now()
    await change('second')
    const found = await readAudit(folder, { ...all, since })
    expect(found.changes.map(({ change: name }) => name)).toEqual(['second'])
    expect((await readAudit(folder, { ...all, until: since - 5 })).changes).toHaveLength(1)
    expect(await readFile(join(folder, 'audit.ndjson'), 'utf8')).toMatch(/\n$/)
  })
})
