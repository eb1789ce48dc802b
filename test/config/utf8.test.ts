// Text that is not UTF-8 is refused, and files stay as they are. cases/utf8.cases.yaml has the texts that commands read.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadUsers } from '../../src/ingest/broker/access/users.ts'
import { createReader } from '../../src/delivery/credentials/credentials-reader.ts'
import { messageOf } from '../../src/std/gateway-error.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

async function fileOf(name: string, bytes: Buffer): Promise<string> {
  const path = join(await newFolder(), name)
  await writeFile(path, bytes)
  return path
}

describe('a file with text that is not UTF-8 is refused', () => {
  test('a password file', async () => {
    const passwordFile = await fileOf('passwords', Buffer.from('# a\nM\xfcller:x\n', 'latin1'))
    await expect(loadUsers({ users: [], passwordFile, tokens: [] })).rejects.toMatchObject({
      code: 'PASSWORDS_INVALID',
      why: 'The file is not UTF-8 at line 2, column 2: save it as UTF-8.',
    })
  })
})

/** `Müller` in Latin-1 in its second line. */
const latin = Buffer.from('#\n# M\xfcller\n', 'latin1')
const place = /The file is not UTF-8 at line 2, column 4: save it as UTF-8/

describe('what a command writes', () => {
  test('a device table is not written anew with other letters', async () => {
    const folder = await newFolder()
    const table = join(folder, 'devices.csv')
    const config = join(folder, 'gateway.yaml')
    const text = await readFile('config/examples/gateway.yaml', 'utf8')
    await writeFile(config, text)
    await writeFile(table, latin)
    const add = ['devices', 'add', 'T1', '--config', config]
    expect((await runCli(add)).stderr).toMatch(place)
    expect(await readFile(table)).toEqual(latin)
    const wide = Buffer.from('\ufeffdevice\nT0\n', 'utf16le')
    await writeFile(table, wide)
    expect((await runCli(add)).stderr).toContain('UTF-16')
    expect(await readFile(table)).toEqual(wide)
    await writeFile(table, '\ufeffdevice\nT0\n')
    expect(await runCli(add)).toMatchObject({ status: 0 })
    // With its byte order mark, by which Excel knows UTF-8.
    expect(await readFile(table, 'utf8')).toBe('\ufeffdevice\nT0\nT1\n')
  })

  test('a file of passwords stays as it is', async () => {
    const file = await fileOf('users', latin)
    expect((await runCli(['passwd', file, 'a'], { stdin: 'secret' })).stderr).toMatch(place)
    expect(await readFile(file)).toEqual(latin)
  })
})

test('a file of credentials that is not UTF-8 is refused with line and column, and none of its text', async () => {
  const text = '{"accessKeyId": "AKID",\n "secretAccessKey": "hush\xe9"}'
  const path = await fileOf('keys.json', Buffer.from(text, 'latin1'))
  const deps = { env: {}, proxy: { kind: 'none' } } as never
  const keys = createReader(deps, { source: 'file', path })(new AbortController().signal)
  const problem = await keys.catch(messageOf)
  expect(problem).toBe('The file is not UTF-8 at line 2, column 26: save it as UTF-8')
})

test('one with a byte order mark is read', async () => {
  const path = await fileOf(
    'keys.json',
    Buffer.from('\ufeff{"accessKeyId": "AKID", "secretAccessKey": "hush"}'),
  )
  const deps = { env: {}, proxy: { kind: 'none' } } as never
  const keys = createReader(deps, { source: 'file', path })(new AbortController().signal)
  expect(await keys).toEqual({ accessKeyId: 'AKID', secretAccessKey: 'hush' })
})
