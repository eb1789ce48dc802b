import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { runCommandLine } from '../../../src/cli/cli.ts'
import { commandIo, runCli } from '../../support/cli-world.ts'
import { eventually } from '../../support/eventually.ts'
import { createDevice } from '../../support/mqtt-device.ts'
import { terminalOutput } from '../../support/terminal-screen.ts'

const anyPorts = ['--mqtt-port', '0', '--service-port', '0', '--status-port', '0']

/** A trial on a terminal of 80 columns. */
function startTrial(more: readonly string[] = []) {
  const terminal = terminalOutput()
  const stop = new AbortController()
  const io = commandIo({
    stdout: terminal.stream,
    env: { PATH: process.env['PATH'] },
    stop: stop.signal,
  })
  const ended = runCommandLine(['trial', ...anyPorts, ...more], io)
  return { ...terminal, ended, stop: () => stop.abort() }
}

/** The arguments of `mosquitto_pub` as a shell gives them to it. */
function sampleArguments(text: string): string[] {
  const [command = ''] = /^ {2}mosquitto_pub [^\n]*\n[^\n]*/m.exec(text) ?? []
  const script = `mosquitto_pub() { printf '%s\\n' "$@"; }\n${command}`
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
}

describe('trial', () => {
  test('shows what becomes of each message that is published by hand', async () => {
    const trial = startTrial(['--devices', '2', '--rate', '2'])
    await eventually(() => trial.text().includes('Ctrl-C'))
    const [, host, , port, , qos, , topic = '', , message = ''] = sampleArguments(trial.text())
    const device = await createDevice({ port: Number(port), clientId: 'my-hand' })
    await device.connect()
    device.publish({ topic, payload: message })
    device.publish({ topic: 'wrong/topic', payload: '{}', qos: 0 })
    await eventually(() => trial.text().includes('accepted by the service'))
    const folder = /config, spool, log +(\S+)/.exec(trial.text())?.[1] ?? ''
    expect(existsSync(folder)).toBe(true)
    trial.stop()
    expect(await trial.ended).toBe(0)
    device.destroy()
    const screen = trial.screen().join('\n')
    expect([host, qos]).toEqual(['127.0.0.1', '1'])
    expect(screen).toMatch(
      / {2}by hand: telemetry\/v1\/my-truck\n +client my-hand, QoS 1\n +source trucks: 1 payload/,
    )
    expect(screen).toMatch(
      /by hand: telemetry\/v1\/my-truck\n +accepted by the service\n +payload \S{36}\n +requestId \S{36}/,
    )
    expect(screen).toMatch(/by hand: wrong\/topic\n +client my-hand, QoS 0\n +dead letter, NO_SOURCE: /)
    // The block is there once, and counts all publishers.
    const [received, ...again] = screen.match(/^received .*$/gm) ?? []
    expect(again).toEqual([])
    const [, all, byHand] = /received +(\d+) messages, (\d+) by hand/.exec(received ?? '') ?? []
    expect(Number(byHand)).toBe(2)
    expect(Number(all)).toBeGreaterThan(2)
    expect(trial.screen().filter((line) => line.length > 80)).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })

  test.each(['--mqtt-port', '--service-port', '--status-port'])(
    'names %s where its port is used',
    async (flag) => {
      await using server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      const { status, stdout, stderr } = await runCli(['trial', ...anyPorts, flag, String(port)])
      expect([status, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(new RegExp(`^ADDRESS_IN_USE\\n.*port ${port} \\(${flag}\\)`))
    },
  )

  test('ends in order where it is stopped while it starts', async () => {
    const trial = startTrial()
    trial.stop()
    expect(await trial.ended).toBe(0)
    expect(trial.text()).toBe('')
  })
})
