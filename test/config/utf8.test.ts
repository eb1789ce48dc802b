import { globSync, readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
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

const problemsOf = (path: string, env: Record<string, string> = {}) =>
  loadConfig(path, { env }).then(
    () => '',
    (error: unknown) => messageOf(error),
  )

describe('a file with text that is not UTF-8 is refused', () => {
  test('a config, with line and column', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('# Größe\nlog: { level: "ä", x: "Müller" }\n'))
    expect(await problemsOf(path)).not.toContain('UTF-8')
    const latin = Buffer.concat([Buffer.from('# Größe\n# ä M'), Buffer.from([0xfc]), Buffer.from('ller\n')])
    expect(await problemsOf(await fileOf('gateway.yaml', latin))).toContain(
      'gateway.yaml:2:6  The file is not UTF-8 at line 2, column 6: save it as UTF-8.',
    )
  })

  test.each([
    ['with', '\ufeff'],
    ['without', ''],
  ])('a config in UTF-16, %s a byte order mark', async (_what, mark) => {
    const text = Buffer.from(`${mark}log: { level: info }\n`, 'utf16le')
    for (const bytes of [text, Buffer.from(text).swap16()])
      expect(await problemsOf(await fileOf('gateway.yaml', bytes))).toContain(
        'The file is UTF-16: save it as UTF-8.',
      )
  })

  test('not for the byte order mark of UTF-8', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('\ufefflog: { levle: info }\n'))
    expect(await problemsOf(path)).toContain('gateway.yaml:1:8  unknown option')
  })

  test('one in ${file:}, without a part of its text', async () => {
    const secret = await fileOf('key', Buffer.from('secret-\xe9', 'latin1'))
    const text = `delivery: { base_url: "\${file:${secret}}" }\n`
    const problems = await problemsOf(await fileOf('gateway.yaml', Buffer.from(text)))
    expect(problems).toContain('The file is not UTF-8 at line 1, column 8: save it as UTF-8.')
    expect(problems).not.toContain('secret-')
  })

  test('a certificate in DER is still named as such', async () => {
    const der = await fileOf('ca.der', Buffer.from([0x30, 0x82, 0x01, 0xff]))
    const text = `delivery: { tls: { ca: "${der}" } }\n`
    const problems = await problemsOf(await fileOf('gateway.yaml', Buffer.from(text)))
    expect(problems).toContain('the file is binary (DER)')
    expect(problems).not.toContain('not UTF-8')
  })

  test('an environment variable', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('delivery: { base_url: "${env:URL}" }\n'))
    expect(await problemsOf(path, { URL: 'M\ufffdller' })).toContain('the environment variable is not UTF-8')
  })

  test('a password file', async () => {
    const passwordFile = await fileOf('passwords', Buffer.from('# a\nM\xfcller:x\n', 'latin1'))
    await expect(loadUsers({ users: [], passwordFile, tokens: [] })).rejects.toMatchObject({
      code: 'PASSWORDS_INVALID',
      why: 'The file is not UTF-8 at line 2, column 2: save it as UTF-8.',
    })
  })
})

/** `Müller` in Latin-1 in its second line. */
const latin = (before = '') => Buffer.from(`${before}#\n# M\xfcller\n`, 'latin1')
const place = /The file is not UTF-8 at line 2, column 4: save it as UTF-8/

describe('text that a command reads', () => {
  test.each<[what: string, name: string, args: (file: string) => string[]]>([
    [
      'cases of a mapping',
      'phones.cases.yaml',
      (file) => ['map', '--test', file, '--config', 'config/examples/gateway.yaml'],
    ],
    ['a preset', 'phones.yaml', (file) => ['map', '--preset', file]],
    ['faults', 'faults.yaml', (file) => ['sandbox', '--listen', '127.0.0.1:0', '--faults', file]],
    [
      'a corrected payload',
      'payload.json',
      (file) => ['dead-letters', 'edit', 'f'.repeat(32), '--file', file],
    ],
    ['an export', 'export.ndjson', (file) => ['dead-letters', 'requeue', '--file', file]],
    ['keys', 'keys.json', (file) => ['init', '--no-input', '--keys', file]],
    [
      'the password for a broker',
      'password',
      (file) => ['learn', '--broker', 'mqtt://127.0.0.1', '--password-file', file],
    ],
    [
      'a password',
      'password',
      (file) => ['status', '--url', 'http://127.0.0.1', '--user', 'u', '--password-file', file],
    ],
  ])('%s is refused with line and column', async (_what, name, args) => {
    const folder = await newFolder()
    const file = join(folder, name)
    await writeFile(file, latin())
    const { status, stderr } = await runCli(args(file), { env: { HOME: folder } })
    expect(stderr).toMatch(place)
    expect(status).not.toBe(0)
  })

  test.each(['-', 'file'])('corrected payloads of %s, and keys', async (from) => {
    for (const args of [
      ['dead-letters', 'edit', 'f'.repeat(32), '--file'],
      ['init', '--no-input', '--keys'],
    ]) {
      const file = from === '-' ? '-' : await fileOf('input', latin())
      expect((await runCli([...args, file], { stdin: latin() })).stderr).toMatch(place)
    }
  })

  test('a device table is not written anew with other letters', async () => {
    const folder = await newFolder()
    const table = join(folder, 'devices.csv')
    const config = join(folder, 'gateway.yaml')
    const text = await readFile('config/examples/gateway.yaml', 'utf8')
    await writeFile(config, text)
    await writeFile(table, latin())
    const add = ['devices', 'add', 'T1', '--config', config]
    expect((await runCli(add)).stderr).toMatch(place)
    expect(await readFile(table)).toEqual(latin())
    const wide = Buffer.from('\ufeffdevice\nT0\n', 'utf16le')
    await writeFile(table, wide)
    expect((await runCli(add)).stderr).toContain('UTF-16')
    expect(await readFile(table)).toEqual(wide)
    await writeFile(table, '\ufeffdevice\nT0\n')
    expect(await runCli(add)).toMatchObject({ status: 0 })
    // With its byte order mark, by which Excel knows UTF-8.
    expect(await readFile(table, 'utf8')).toBe('\ufeffdevice\nT0\nT1\n')
  })

  test('a file of passwords, which stays as it is', async () => {
    const file = await fileOf('users', latin())
    expect((await runCli(['passwd', file, 'a'], { stdin: 'secret' })).stderr).toMatch(place)
    expect(await readFile(file)).toEqual(latin())
    const config = join(await newFolder(), 'gateway.yaml')
    const text = await readFile('config/examples/gateway.yaml', 'utf8')
    await writeFile(config, text.replace('anonymous: true', `password_file: ${file}`))
    const { stderr } = await runCli(['check', '--config', config])
    expect(stderr).toMatch(
      /password_file names a file with an error: \S+users: The file is not UTF-8 at line 2, column 4/,
    )
  })

  test('a password of standard input', async () => {
    const file = join(await newFolder(), 'users')
    const { status, stderr } = await runCli(['passwd', file, 'a'], {
      stdin: Buffer.from('M\xfcller\n', 'latin1'),
    })
    expect([status, stderr]).toEqual([2, expect.stringContaining('The password is not UTF-8.')])
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

/** Why these read text without them. */
const readOtherwise: Record<string, string> = {
  'src/app/kernel-clock.ts': 'of the kernel',
  'src/cli/check-command/memory-limits.ts': 'of the kernel',
  'src/cli/daemon-client/absent-daemon.ts': 'looks for one word',
  'src/cli/docs-command.ts': 'compares files of this repository',
  'src/cli/doctor-command/disk-checks.ts': 'of the kernel',
  'src/cli/init-command/setup-files.ts': '/etc/passwd',
  'src/cli/support-bundle-command/redaction.ts': 'hides what it finds',
  'src/cli/support-bundle-command/support-bundle-command.ts': 'a log, of which it shows what there is',
  'src/cli/terminal/package-version.ts': 'of the package',
  'src/config/open-files/open-files.ts': 'of the kernel',
  'src/config/preset-files.ts': 'of the package',
  'src/delivery/credentials/credentials-chain.ts': 'of the kernel',
  'src/ops/page/page-assets.ts': 'of the package',
  'src/spool/snapshot/restore.ts': 'its own file',
  'src/std/file-system/file-system.ts': 'of the kernel',
  'src/std/file-system/regular-file.ts': 'its own file',
  'src/storage/fixed-file.ts': 'its own file',
  'src/storage/store-snapshot.ts': 'its own file',
}

test('what a person writes is read by readUtf8, readBoundedUtf8 or utf8Text alone', () => {
  const others = globSync('src/**/*.ts').filter((file) =>
    /readFile(Sync)?\((?!\)).*'utf8'|from 'node:stream\/consumers'.*\btext\b|\btext\b.*from 'node:stream\/consumers'/.test(
      readFileSync(file, 'utf8'),
    ),
  )
  expect(others.sort()).toEqual(Object.keys(readOtherwise))
})
