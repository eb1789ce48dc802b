import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, describe, expect, test } from 'vitest'
import { readPassword } from '../../src/cli/terminal/password-input.ts'
import { parsePasswordFile } from '../../src/std/passwords/password-file.ts'
import { commandIo, runCli } from '../support/cli-world.ts'
import { keptOutput } from '../support/ops-world.ts'

const folder = mkdtempSync(join(tmpdir(), 'passwd-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
const newFile = () => join(folder, `users-${(count += 1)}`)
const passwd = (argv: readonly string[], stdin = '') => runCli(['passwd', ...argv], { stdin })

describe('passwd', () => {
  test('adds users to a new file that only its owner may read, and stores no password', async () => {
    const file = newFile()
    expect(await passwd([file, 'truck-7'], 'secret words\n')).toMatchObject({ status: 0, stderr: '' })
    expect(await passwd([file, 'truck-8'], 'other')).toMatchObject({ status: 0 })
    const text = readFileSync(file, 'utf8')
    expect(text).not.toMatch(/secret|other/)
    expect([...parsePasswordFile(text).users.keys()]).toEqual(['truck-7', 'truck-8'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder).filter((name) => name.endsWith('.new'))).toEqual([])
  })

  test('changes nothing where another command changes the file', async () => {
    const locked = newFile()
    writeFileSync(`${locked}.new`, '')
    const refused = await passwd([locked, 'a'], 'one')
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('Another command') })
  })

  test('follows a link to the file, and keeps the link', async () => {
    const target = newFile()
    const link = newFile()
    writeFileSync(target, '')
    symlinkSync(target, link)
    await passwd([link, 'a'], 'one')
    expect(readFileSync(target, 'utf8')).toMatch(/^a:/)
  })

  test('run by root, gives the file the owner of its folder', async () => {
    if (process.geteuid?.() !== 0) return
    const own = join(folder, 'of-the-gateway')
    mkdirSync(own)
    chownSync(own, 4711, 4711)
    await passwd([join(own, 'users'), 'a'], 'one')
    expect(statSync(join(own, 'users'))).toMatchObject({ uid: 4711, gid: 4711 })
  })
})

describe('a password at a terminal', () => {
  function openTerminal() {
    const stderr = keptOutput()
    const modes: boolean[] = []
    const stdin = Object.assign(new PassThrough(), {
      isTTY: true,
      setRawMode: (raw: boolean) => void modes.push(raw),
    })
    const io = commandIo({ stdin, stdout: stderr.stream, stderr: stderr.stream })
    return { stdin, modes, io, text: stderr.text }
  }

  test('is asked for twice and is not shown', async () => {
    const { stdin, modes, io, text } = openTerminal()
    const read = readPassword(io, 'Password of a', true)
    stdin.write('secretx\u007f\r')
    await new Promise(setImmediate)
    stdin.write('secret\r')
    expect(await read).toBe('secret')
    expect(text()).toBe('Password of a: \nPassword of a, again: \n')
    expect(modes).toEqual([true, false, true, false])
  })

  test('is refused where the two differ, or at Ctrl-C', async () => {
    const one = openTerminal()
    const differing = readPassword(one.io, 'p', true)
    one.stdin.write('a\r')
    await new Promise(setImmediate)
    one.stdin.write('b\r')
    await expect(differing).rejects.toMatchObject({ code: 'USAGE', why: 'The two passwords differ.' })
    const other = openTerminal()
    const ended = readPassword(other.io, 'p', true)
    other.stdin.write('a\u0003')
    await expect(ended).rejects.toMatchObject({ code: 'USAGE' })
    expect(other.modes).toEqual([true, false])
  })
})
