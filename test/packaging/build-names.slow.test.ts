// The name of a build: how it is made, which of two is the newer one, and that every place says the same.

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { debVersion } from '../../config/packaging/control-files.ts'
import { buildName, readVersion } from '../../src/cli/terminal/package-version.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../support/spawned-daemon.ts'

const gitEnvironment = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))),
  GIT_CONFIG_GLOBAL: '/dev/null',
  // Two commits of one second.
  GIT_AUTHOR_DATE: '2026-11-28T12:00:00Z',
  GIT_COMMITTER_DATE: '2026-11-28T12:00:00Z',
}
const git = (folder: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
    cwd: folder,
    env: gitEnvironment,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })

async function newCheckout(version: string, commits: number): Promise<string> {
  const folder = await newFolder()
  git(folder, 'init', '-q')
  await writeFile(join(folder, 'package.json'), JSON.stringify({ version }))
  git(folder, 'add', '.')
  for (let n = 1; n <= commits; n++) git(folder, 'commit', '-q', '--allow-empty', '-m', `commit ${n}`)
  return folder
}

describe('the name of a build', () => {
  test('has the number of commits and the first twelve digits of the commit', async () => {
    const folder = await newCheckout('0.2.0-dev', 3)
    const commit = git(folder, 'rev-parse', 'HEAD').slice(0, 12)
    expect(buildName(folder)).toBe(`0.2.0-dev.3.g${commit}`)
  })

  test('says where files differ from the commit', async () => {
    const folder = await newCheckout('0.2.0-dev', 1)
    await writeFile(join(folder, 'notes.txt'), 'of a person')
    expect(buildName(folder)).toMatch(/^0\.2\.0-dev\.1\.g[0-9a-f]{12}$/)
    await writeFile(join(folder, 'package.json'), '{ "version": "0.2.0-dev" }')
    expect(buildName(folder)).toMatch(/^0\.2\.0-dev\.1\.g[0-9a-f]{12}\+dirty$/)
  })

  test('is the version of a release where package.json has one', async () => {
    expect(buildName(await newCheckout('0.2.0', 2))).toBe('0.2.0')
  })

  test('is unknown without a repository, in that of another project, and where it lacks commits', async () => {
    const none = await newFolder()
    await writeFile(join(none, 'package.json'), '{ "version": "0.2.0-dev" }')
    expect(buildName(none)).toBe('0.2.0-dev+unknown')
    const checkout = await newCheckout('0.2.0-dev', 2)
    const inner = join(checkout, 'vendor/telemetry-gateway')
    await mkdir(inner, { recursive: true })
    await writeFile(join(inner, 'package.json'), '{ "version": "0.2.0-dev" }')
    expect(buildName(inner)).toBe('0.2.0-dev+unknown')
    const shallow = await newFolder()
    git(shallow, 'clone', '-q', '--depth', '1', `file://${checkout}`, '.')
    expect(buildName(shallow)).toBe('0.2.0-dev+unknown')
  })
})

describe.skipIf(!existsSync('/usr/bin/dpkg'))('to dpkg', () => {
  const isOlder = (left: string, right: string) =>
    spawnSync('dpkg', ['--compare-versions', debVersion(left), 'lt', debVersion(right)]).status === 0

  test('of two commits of one day the later one is newer', async () => {
    const folder = await newCheckout('0.2.0-dev', 1)
    const names = [buildName(folder)]
    for (let n = 2; n <= 12; n++) {
      git(folder, 'commit', '-q', '--allow-empty', '-m', `commit ${n}`)
      names.push(buildName(folder))
    }
    for (const [index, name] of names.slice(1).entries()) {
      expect([name, isOlder(names[index] ?? '', name)]).toEqual([name, true])
      expect(isOlder(name, names[index] ?? '')).toBe(false)
    }
  })

  // Smaller digits of the commit must not outweigh the number.
  const ordered = [
    '0.1.0',
    '0.2.0-dev+unknown',
    '0.2.0-dev.9.gffffffffffff',
    '0.2.0-dev.9.gffffffffffff+dirty',
    '0.2.0-dev.10.g000000000000',
    '0.2.0-dev.1000.g000000000000',
    '0.2.0-rc.1',
    '0.2.0',
    '0.2.1-dev.1001.g000000000000',
  ]
  test.each(ordered.slice(1).map((name, index) => [ordered[index] ?? '', name]))(
    '%s is older than %s',
    (left, right) => {
      expect([isOlder(left, right), isOlder(right, left)]).toEqual([true, false])
    },
  )
})

describe('every place says the same name', () => {
  test(
    'version, --version, the first line of the log, /status, status and the page',
    { timeout: 120_000 },
    async () => {
      const folder = await newFolder()
      const config = await writeDaemonConfig(folder, 'http://127.0.0.1:9')
      const { url, starting } = await startSpawnedDaemon(config)
      const { version } = (await (await fetch(`${url}/status`)).json()) as { version: string }
      const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text()
      const printed = async (...argv: string[]) => (await runCli(argv)).stdout
      const places = {
        log: starting['version'],
        status: version,
        page: /Version ([^ ]+)\. State of/.exec(page)?.[1],
        '--version': (await printed('--version')).trim(),
        'version command': /telemetry-gateway ([^,]+),/.exec(await printed('version'))?.[1],
        'status command': /telemetry gateway ([^,]+),/.exec(await printed('status', '--url', url))?.[1],
        metrics: /gateway_build_info\{.*version="([^"]+)"/.exec(
          await (await fetch(`${url}/metrics`)).text(),
        )?.[1],
      }
      expect(version).toMatch(/^\d+\.\d+\.\d+(-dev(\.\d+\.g[0-9a-f]{12}(\+dirty)?|\+unknown))?$/)
      expect(places).toEqual(Object.fromEntries(Object.keys(places).map((place) => [place, readVersion()])))
    },
  )

  test('a command that does not print it does not ask git', async () => {
    const folder = await newFolder()
    await writeFile(join(folder, 'git'), `#!/bin/sh\necho asked >>${folder}/asked\n`, { mode: 0o755 })
    const program = join(import.meta.dirname, '../../src/main.ts')
    const run = (...argv: string[]) =>
      execFileSync(process.execPath, [program, ...argv], {
        env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
        encoding: 'utf8',
      })
    run('--help')
    run('map', '--help')
    expect(existsSync(join(folder, 'asked'))).toBe(false)
    run('--version')
    expect(existsSync(join(folder, 'asked'))).toBe(true)
  })
})
