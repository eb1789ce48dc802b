import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createFileWatch } from '../../src/std/file-watch/file-watch.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { newFolder } from '../support/folders.ts'

const options = { settleMs: 200, pollMs: 30_000 }

async function world({ blind = false } = {}) {
  const folder = await newFolder()
  const file = join(folder, 'a.yaml')
  await writeFile(file, 'one')
  const clock = createFakeClock()
  let changes = 0
  let hint = () => {}
  const watch = createFileWatch(
    {
      clock,
      changed: () => (changes += 1),
      watchFolder(_folder, changed) {
        if (blind) throw new Error('no watches left')
        hint = changed
        return { close() {} }
      },
    },
    options,
  )
  onTestFinished(() => watch.close())
  await watch.watch([file])
  return { clock, watch, file, folder, changes: () => changes, hint: () => hint() }
}

describe('a file that is watched', () => {
  test('is checked once, a moment after the events of the system', async () => {
    const { clock, file, hint, changes } = await world()
    await writeFile(file, 'two!')
    for (let count = 0; count < 100; count += 1) hint()
    await clock.advance(199)
    expect(changes()).toBe(0)
    await clock.advance(1)
    await eventually(() => changes() === 1)
    await clock.advance(1000)
    expect(changes()).toBe(1)
  })

  test('that did not change is not reported, also if other files in its folder change', async () => {
    const { clock, folder, hint, changes } = await world()
    await writeFile(join(folder, 'log'), 'x')
    hint()
    await clock.advance(60_000)
    expect(changes()).toBe(0)
  })

  test('is detected by polling if the system reports nothing', async () => {
    const { clock, file, folder, changes } = await world({ blind: true })
    await writeFile(join(folder, 'b.yaml'), 'one')
    await rename(join(folder, 'b.yaml'), file)
    await clock.advance(29_999)
    expect(changes()).toBe(0)
    await clock.advance(1)
    await eventually(() => changes() === 1)
  })

  test('is reported when it is removed and when it is back', async () => {
    const { clock, file, changes } = await world({ blind: true })
    await rm(file)
    await clock.advance(30_000)
    await eventually(() => changes() === 1)
    await writeFile(file, 'back')
    await clock.advance(30_000)
    await eventually(() => changes() === 2)
    expect(changes()).toBe(2)
  })

  test('is not checked after close', async () => {
    const { clock, watch, file, hint, changes } = await world()
    watch.close()
    await writeFile(file, 'two!')
    hint()
    await clock.advance(60_000)
    expect([changes(), clock.pending()]).toEqual([0, 0])
  })

  test.each<[string, (folder: string, file: string) => Promise<void>]>([
    ['a file that is written in place', (_folder, file) => writeFile(file, 'two!')],
    [
      'a file that is replaced by rename',
      async (folder, file) => {
        await writeFile(join(folder, 'new'), 'two')
        await rename(join(folder, 'new'), file)
      },
    ],
    [
      'a mounted secret whose link is replaced',
      async (folder) => {
        await mkdir(join(folder, 'v2'))
        await writeFile(join(folder, 'v2', 'a.yaml'), 'two')
        await symlink('v2', join(folder, 'next'))
        await rename(join(folder, 'next'), join(folder, '..data'))
      },
    ],
  ])('is reported by the system: %s', async (what, change) => {
    const folder = await newFolder()
    const file = join(folder, 'a.yaml')
    if (what.includes('secret')) {
      await mkdir(join(folder, 'v1'))
      await writeFile(join(folder, 'v1', 'a.yaml'), 'one')
      await symlink('v1', join(folder, '..data'))
      await symlink(join('..data', 'a.yaml'), file)
    } else await writeFile(file, 'one')
    const clock = createFakeClock()
    let changes = 0
    const watch = createFileWatch({ clock, changed: () => (changes += 1) }, options)
    onTestFinished(() => watch.close())
    await watch.watch([file])
    await change(folder, file)
    // The poll has one timer; the event adds another.
    await eventually(() => clock.pending() === 2)
    await clock.advance(200)
    await eventually(() => changes > 0)
    expect(changes).toBe(1)
  })
})
