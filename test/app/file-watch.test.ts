import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createFileWatch } from '../../src/app/file-watch.ts'
import { eventually } from '../support/eventually.ts'
import { createFakeClock } from '../support/fake-clock.ts'
import { newFolder } from '../support/folders.ts'

const options = { settleMs: 200, pollMs: 30_000 }

async function world({ blind = false } = {}) {
  const folder = await newFolder()
  const file = join(folder, 'a.yaml')
  await writeFile(file, 'one')
  const clock = createFakeClock()
  let told = 0
  let hint = () => {}
  const watch = createFileWatch(
    {
      clock,
      changed: () => (told += 1),
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
  return { clock, watch, file, folder, told: () => told, hint: () => hint() }
}

describe('a file that is watched', () => {
  test('is looked at a moment after the system says that something moved, once', async () => {
    const { clock, file, hint, told } = await world()
    await writeFile(file, 'two!')
    for (let count = 0; count < 100; count += 1) hint()
    await clock.advance(199)
    expect(told()).toBe(0)
    await clock.advance(1)
    await eventually(() => told() === 1)
    await clock.advance(1000)
    expect(told()).toBe(1)
  })

  test('that did not change is no news, whatever else moves beside it', async () => {
    const { clock, folder, hint, told } = await world()
    await writeFile(join(folder, 'log'), 'x')
    hint()
    await clock.advance(60_000)
    expect(told()).toBe(0)
  })

  test('is found by the poll where the system says nothing', async () => {
    const { clock, file, folder, told } = await world({ blind: true })
    await writeFile(join(folder, 'b.yaml'), 'one')
    await rename(join(folder, 'b.yaml'), file)
    await clock.advance(29_999)
    expect(told()).toBe(0)
    await clock.advance(1)
    await eventually(() => told() === 1)
  })

  test('is news when it goes and when it comes back', async () => {
    const { clock, file, told } = await world({ blind: true })
    await rm(file)
    await clock.advance(30_000)
    await eventually(() => told() === 1)
    await writeFile(file, 'back')
    await clock.advance(30_000)
    await eventually(() => told() === 2)
    expect(told()).toBe(2)
  })

  test('is not looked at after the end', async () => {
    const { clock, watch, file, hint, told } = await world()
    watch.close()
    await writeFile(file, 'two!')
    hint()
    await clock.advance(60_000)
    expect([told(), clock.pending()]).toEqual([0, 0])
  })

  test('is told by the real system within a moment', async () => {
    const folder = await newFolder()
    const file = join(folder, 'a.yaml')
    const clock = createFakeClock()
    let told = 0
    const watch = createFileWatch({ clock, changed: () => (told += 1) }, options)
    onTestFinished(() => watch.close())
    await watch.watch([file])
    await writeFile(file, 'new')
    // Only the poll waits; the hint adds a timer of its own.
    await eventually(() => clock.pending() === 2)
    await clock.advance(200)
    await eventually(() => told === 1)
    expect(told).toBe(1)
  })
})
