import { execFileSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { runCommandLine } from '../../../src/cli/cli.ts'
import { configText, newTable, untouched } from '../../../src/cli/init-command/new-config.ts'
import { commandIo, runCli } from '../../support/cli-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { keptOutput } from '../../support/ops-world.ts'

let folder = ''
let etc = ''
beforeEach(async () => {
  folder = await newFolder()
  etc = join(folder, 'etc')
})

const service = '--service https://ingest.example.com'
/** With words that have no blanks. */
const init = (words: string) =>
  runCli(['init', '--to', etc, '--spool', join(folder, 'spool'), '--no-doctor', ...words.split(' ')])
const textOf = (name: string) => readFileSync(join(etc, name), 'utf8')
const filesOf = () => readdirSync(etc).toSorted()
const own = ['devices.csv', 'gateway.yaml', 'ingestion.json', 'users']

/** `init` at a terminal that shows nothing by itself. */
function atTerminal(words = '') {
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    raw: false,
    setRawMode: (raw: boolean) => void (stdin.raw = raw),
  })
  const stdout = keptOutput()
  const stderr = keptOutput()
  const stop = new AbortController()
  const io = commandIo({ stdin, stdout: stdout.stream, stderr: stderr.stream, stop: stop.signal })
  const argv = ['init', '--to', etc, '--no-doctor', ...words.split(' ').filter(Boolean)]
  return {
    stdin,
    stop,
    shown: stdout.text,
    errors: stderr.text,
    ended: runCommandLine(argv, io),
    async answer(question: string, line: string) {
      await eventually(() => stdout.text().split('\n').at(-1)?.includes(question) === true)
      stdin.write(`${line}\n`)
      // Makes the last line of the output differ, as the echo of a terminal does.
      stdout.stream.write(stdin.raw ? '' : '\n')
    },
  }
}

describe('init without a terminal', () => {
  test('writes a config, a table, users and keys that are valid together', async () => {
    const { status, stdout, stderr } = await init(`${service} --device truck-7 --device truck-8=TRK-8`)
    expect([status, stderr]).toEqual([0, ''])
    expect(filesOf()).toEqual(own)
    expect(textOf('devices.csv')).toBe(`${newTable}truck-7,truck-7,,,,,,\ntruck-8,TRK-8,,,,,,\n`)
    expect(await runCli(['check', '--config', join(etc, 'gateway.yaml')])).toMatchObject({ status: 0 })
    expect(stdout).toContain('Start it:')
  })

  test('prints the password of each device once, and stores its hash', async () => {
    const { stdout } = await init(`${service} --device truck-7`)
    const [, password = ''] = /truck-7 +([a-z0-9-]{19})\n/.exec(stdout) ?? []
    const users = join(etc, 'users')
    expect(await runCli(['passwd', users, 'truck-7', '--verify'], { stdin: password })).toMatchObject({
      status: 0,
    })
    for (const name of own) expect(textOf(name)).not.toContain(password)
  })

  test('lets nobody else read what is secret, and nobody change the config', async () => {
    await init(service)
    const modes = own.map((name) => (statSync(join(etc, name)).mode & 0o777).toString(8))
    expect(modes).toEqual(['640', '640', '600', '600'])
    expect((statSync(etc).mode & 0o777).toString(8)).toBe('750')
  })
})

describe('init where files are already', () => {
  test('replaces the config that the package installs', async () => {
    mkdirSync(etc)
    writeFileSync(join(etc, 'gateway.yaml'), configText(untouched))
    writeFileSync(join(etc, 'ingestion.json'), '')
    expect(await init(service)).toMatchObject({ status: 0 })
    expect(filesOf()).toEqual(own)
  })

  test('replaces no other config, not even one with a changed comment', async () => {
    mkdirSync(etc)
    const present = `# mine\n${configText(untouched)}`
    writeFileSync(join(etc, 'gateway.yaml'), present)
    const { status, stderr } = await init(service)
    expect([status, stderr]).toEqual([1, expect.stringMatching(/OUTPUT_UNWRITABLE[^]*--force/)])
    expect([filesOf(), textOf('gateway.yaml')]).toEqual([['gateway.yaml'], present])
  })

  test('waits for no pipe that has the name of a file', async () => {
    mkdirSync(etc)
    execFileSync('mkfifo', [join(etc, 'gateway.yaml')])
    const { status, stderr } = await init(service)
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/INPUT_UNREADABLE[^]*no regular file[^]*--to/),
    ])
  })

  test('keeps what --force replaces', async () => {
    await init(service)
    const present = textOf('gateway.yaml')
    const { stdout } = await init('--service https://other.example.com --force')
    const [kept = ''] = filesOf().filter((name) => name.includes('.replaced-'))
    expect(textOf(kept)).toBe(present)
    expect(stdout).toContain(kept)
    expect(textOf('gateway.yaml')).toContain('https://other.example.com')
  })

  test('keeps keys, devices and passwords that are there, and adds new devices', async () => {
    writeFileSync(join(folder, 'keys.json'), '{"accessKeyId": "a", "secretAccessKey": "b"}')
    await init(`${service} --device truck-7 --keys ${folder}/keys.json`)
    const before = { users: textOf('users'), keys: textOf('ingestion.json') }
    const { stdout } = await init(`${service} --device truck-7 --device truck-8 --force`)
    expect(stdout).not.toMatch(/truck-7 +[a-z0-9-]{19}/)
    expect(textOf('users')).toContain(before.users)
    expect(textOf('ingestion.json')).toBe(before.keys)
    expect(textOf('devices.csv')).toContain('truck-7,truck-7,,,,,,\ntruck-8,truck-8')
  })

  test('refuses a device that is in the table with another asset', async () => {
    await init(`${service} --device truck-7`)
    const before = own.map(textOf)
    const { status, stderr } = await init(`${service} --device truck-7=OTHER --force`)
    expect([status, stderr]).toEqual([2, expect.stringContaining('"truck-7" with other fields')])
    expect(own.map(textOf)).toEqual(before)
  })
})

describe('init at a terminal', () => {
  const toTheDevices = async ({ answer }: ReturnType<typeof atTerminal>) => {
    await answer('URL of the ingestion API', 'https://ingest.example.com')
    await answer('X-Provider-Key', '')
    await answer('Address for devices', '')
    await answer('How devices send', 'owntrak')
    await answer('How devices send', 'owntracks')
    await answer('Carrier', 'North')
    await answer('Operator', '')
    await answer('Type of the vehicles', '')
    await answer('not in the table', '')
  }

  test('asks for what no option says, and asks again after a wrong answer', async () => {
    const terminal = atTerminal(`--spool ${folder}/spool`)
    const { answer } = terminal
    await toTheDevices(terminal)
    await answer('Most that the spool may take', '2GiB')
    await answer('Device, as KEY', 'anna/phone=VAN-3')
    await answer('Next device', 'anna/phone')
    await answer('Next device', '')
    await answer('Access key id', 'AKID')
    await eventually(() => terminal.stdin.raw)
    await answer('Secret access key', 'hiddenX\u007f words')
    expect(await terminal.ended).toBe(0)
    expect(terminal.stdin.raw).toBe(false)
    expect(terminal.shown()).toContain('There is no preset "owntrak". Did you mean owntracks?')
    expect(terminal.shown()).toContain('"anna/phone" is in the list already.')
    expect(terminal.shown()).not.toContain('hidden words')
    expect(JSON.parse(textOf('ingestion.json'))).toEqual({
      accessKeyId: 'AKID',
      secretAccessKey: 'hidden words',
    })
    const config = textOf('gateway.yaml')
    for (const words of ['mqtt://0.0.0.0:1883', 'preset: owntracks', 'carrier: North', 'max_bytes: 2GiB'])
      expect(config).toContain(words)
    expect(textOf('devices.csv')).toContain('anna/phone,VAN-3')
  })

  test('moves no cursor and uses no escape code, for a serial console', async () => {
    const terminal = atTerminal()
    await toTheDevices(terminal)
    terminal.stdin.end()
    await terminal.ended
    expect(terminal.shown()).not.toContain('\u001b')
    expect(terminal.shown()).not.toContain('\r')
  })

  test.each([
    ['Ctrl-C', ({ stop }: ReturnType<typeof atTerminal>) => stop.abort('SIGINT')],
    ['the end of the input', ({ stdin }: ReturnType<typeof atTerminal>) => void stdin.end()],
  ])('writes nothing after %s', async (_name, interrupt) => {
    const terminal = atTerminal()
    await toTheDevices(terminal)
    interrupt(terminal)
    expect(await terminal.ended).toBe(2)
    expect(terminal.errors()).toContain('Nothing was written')
    expect(readdirSync(folder)).toEqual([])
  })

  test('ends at Ctrl-C also while the secret is typed', async () => {
    const terminal = atTerminal(`${service} --device truck-7 --preset json`)
    const { answer } = terminal
    for (const question of [
      'X-Provider-Key',
      'Address',
      'Carrier',
      'Operator',
      'Type of the vehicles',
      'not in the table',
      'Spool: a directory',
      'Most that',
    ])
      await answer(question, '')
    await answer('Access key id', 'AKID')
    await eventually(() => terminal.stdin.raw)
    terminal.stdin.write('half\u0003')
    expect(await terminal.ended).toBe(2)
    expect(terminal.stdin.raw).toBe(false)
    expect(readdirSync(folder)).toEqual([])
  })

  test('refuses to replace a config before it asks', async () => {
    await init(service)
    const terminal = atTerminal()
    expect(await terminal.ended).toBe(1)
    expect(terminal.shown()).toBe('')
  })
})

describe('a source or a provider that is added', () => {
  const add = (words: string) => runCli(['init', '--to', etc, '--no-input', ...words.split(' ')])
  const write = (text: string) => writeFileSync(join(etc, 'gateway.yaml'), text)

  test('leaves every line of the config as a person wrote it, and the mode', async () => {
    await init(`${service} --device truck-7`)
    const edited = textOf('gateway.yaml')
      .replace('# Config of', '# Edited by Jane.\n# Config of')
      .replace('log: { level: info }', '# Less.\nlog: { level: warn }')
    write(edited)
    chmodSync(join(etc, 'gateway.yaml'), 0o600)
    const { status, stdout, stderr } = await add('--add-source phones --preset owntracks')
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('name: phones')
    expect(stdout).toContain('Publish to the topic owntracks/{user}/{device}/#.')
    const lines = textOf('gateway.yaml').split('\n')
    const lost = edited.split('\n').filter((line) => !lines.includes(line))
    expect(lost).toEqual([])
    expect(statSync(join(etc, 'gateway.yaml')).mode & 0o777).toBe(0o600)
    expect(filesOf()).toEqual(own)
    expect(await runCli(['check', '--config', join(etc, 'gateway.yaml')])).toMatchObject({ status: 0 })
  })

  test('of a second provider leaves the first one in force for the sources that name none', async () => {
    await init(`${service} --provider-key FIRST`)
    const { status, stderr } = await add('--add-provider partner --provider-key P2')
    expect([status, stderr]).toEqual([0, ''])
    expect((await add('--add-source p --preset json --provider partner')).status).toBe(0)
    const { stdout } = await runCli(['check', '--json', '--config', join(etc, 'gateway.yaml')])
    const { config } = JSON.parse(stdout) as { config: { delivery: string[]; sources: string[] } }
    expect(config.delivery).toEqual([
      expect.stringContaining('provider default, X-Provider-Key FIRST'),
      expect.stringContaining('provider partner, X-Provider-Key P2'),
    ])
    expect(config.sources).toContain('p on telemetry/p/{device}')
  })
})

describe('the spool of a new config', () => {
  test('is made by init, and a gateway with this config makes none in its place', async () => {
    expect((await init(service)).status).toBe(0)
    expect(parse(textOf('gateway.yaml'))).toMatchObject({ spool: { create: false } })
    expect(JSON.parse(readFileSync(join(folder, 'spool', 'spool.json'), 'utf8'))).toMatchObject({
      by: 'init',
    })
  })

  test('is not made where its parent is missing, and the warning names the command', async () => {
    const spool = join(folder, 'disk/spool')
    const { status, stdout } = await runCli([
      'init',
      '--to',
      etc,
      '--spool',
      spool,
      '--no-doctor',
      ...service.split(' '),
    ])
    expect(status).toBe(0)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(`Run \`spool init --path ${spool}\``)
    expect(readdirSync(folder)).toEqual(['etc'])
  })
})
