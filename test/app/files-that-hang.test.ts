// What the daemon reads while it runs may be replaced by something that is no file, or lie on a disk that does not answer.

import { execFileSync } from 'node:child_process'
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { createCredentials } from '../../src/delivery/credentials/credentials.ts'
import { systemClock } from '../../src/std/clock.ts'
import { configText } from '../support/config-text.ts'
import { eventually } from '../support/eventually.ts'
import { newFolder } from '../support/folders.ts'
import { startPipeline, type Pipeline } from '../support/pipeline-world.ts'

const places: Record<string, (path: string) => unknown> = {
  'a pipe without a writer': (path) => execFileSync('mkfifo', [path]),
  'a device without an end': (path) => symlink('/dev/zero', path),
}

async function replace(path: string, by: (path: string) => unknown): Promise<void> {
  await rm(path)
  await by(path)
}

async function start(): Promise<Pipeline> {
  const folder = await newFolder()
  await writeFile(join(folder, 'devices.csv'), 'device\n')
  await writeFile(join(folder, 'passwords'), `truck:${await hashPassword('right')}\n`)
  return startPipeline({
    folder,
    config: configText({
      broker: '{ listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { password_file: passwords } }',
      more: 'devices: { file: devices.csv }',
    }),
  })
}

describe.each(Object.entries(places))('%s in the place of', (_, place) => {
  test.each([
    ['gateway.yaml', 'MAPPING_STALE'],
    ['devices.csv', 'MAPPING_STALE'],
    ['passwords', 'ACCESS_STALE'],
  ])('%s is a condition, and the next good file is in force', async (name, code) => {
    const pipeline = await start()
    const path = join(pipeline.folder, name)
    const text = execFileSync('cat', [path])
    await replace(path, place)
    await pipeline.gateway.reload('the test')
    const condition = pipeline.status().conditions.find((one) => one.code === code)
    expect(condition?.why).toMatch(/is no regular file/)
    await replace(path, (at) => writeFile(at, text))
    expect(await pipeline.gateway.reload('the test')).toMatchObject({ kind: 'reloaded' })
    await pipeline.until(() => pipeline.status().conditions.every((one) => one.code !== code))
  })

  test('the credentials leaves the former keys in use, and new ones are taken', async () => {
    const path = join(await newFolder(), 'keys.json')
    const keys = (id: string) => JSON.stringify({ accessKeyId: id, secretAccessKey: 'secret' })
    await writeFile(path, keys('AKIAFORMER'))
    const failed = vi.fn<() => void>()
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() * 1000 }
    const source = createCredentials({ clock, env: {}, refreshFailed: failed }, { source: 'file', path })
    expect(await source.current()).toMatchObject({ accessKeyId: 'AKIAFORMER' })
    await replace(path, place)
    await eventually(async () => {
      expect(await source.current()).toMatchObject({ accessKeyId: 'AKIAFORMER' })
      return failed.mock.calls.length > 0
    })
    await replace(path, (at) => writeFile(at, keys('AKIANEXT')))
    await eventually(async () => (await source.current()).accessKeyId === 'AKIANEXT')
  })
})
