// find-daemon.ts: where the daemon of a command is.
//
//   --socket, --url   there
//   --config          the control socket that the config names, or the one in its spool, or the one of the
//                     service if that daemon has the same spool; else ops.listen
//   nothing           the control socket of the service; else http://127.0.0.1:8080
//
// A socket that does not answer, or that the user may not open, is passed over: reading is also possible over
// TCP, and the daemon says there what a change needs.

import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { GatewayError } from '../../std/gateway-error.ts'
import { shownUrl } from '../../std/shown-url.ts'
import { opsUrl } from '../../ops/config.ts'
import { readPasswordFile } from '../terminal/password-argument.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { answersAt, type Daemon } from './daemon-client.ts'

export type PlaceOptions = {
  config?: string
  socket?: string
  url?: string
  user?: string
  passwordFile?: string
}

export const defaultUrl = 'http://127.0.0.1:8080'
/** RuntimeDirectory of the systemd unit. */
export const serviceSocket = '/run/telemetry-gateway/control.sock'

type Io = Pick<CommandIo, 'env' | 'stop'>

export async function findDaemon(options: PlaceOptions, io: Io): Promise<Daemon> {
  const { config, socket, url } = options
  if ([config, socket, url].filter((place) => place !== undefined).length > 1)
    throw new GatewayError('USAGE', {
      what: 'More than one of --config, --socket and --url is given.',
      why: 'Each of them names a daemon.',
      act: 'Give one of them.',
    })
  if (socket !== undefined) return onSocket(resolve(socket), io)
  if (url?.startsWith('unix:')) return onSocket(url.slice('unix:'.length), io)
  if (url !== undefined) return onTcp(checked(url), options)
  if (config !== undefined) return ofConfig(config, options, io)
  const service = onSocket(serviceSocket, io)
  return (await answersAt(service, io.stop)) ? service : onTcp(defaultUrl, options)
}

async function ofConfig(config: string, options: PlaceOptions, io: Io): Promise<Daemon> {
  // Loaded late: it brings the schema of every stage.
  const { loadDaemonPlaces } = await import('../../config/config.ts')
  const { listen, controlSocket, spoolPath } = await loadDaemonPlaces(config, { env: io.env })
  const sockets = controlSocket === null ? [`${spoolPath}/control.sock`, serviceSocket] : [controlSocket]
  for (const path of sockets) {
    // Another gateway may be the service of this machine.
    const daemon = onSocket(path, io, { 'gateway-spool': encodeURIComponent(spoolPath) })
    if (await answersAt(daemon, io.stop)) return daemon
  }
  return onTcp(opsUrl(listen), options)
}

function onSocket(path: string, { env }: Pick<Io, 'env'>, more: Daemon['headers'] = {}): Daemon {
  const sudoUser = env['SUDO_USER']
  const sudo = sudoUser === undefined ? {} : { 'gateway-sudo-user': encodeURIComponent(sudoUser) }
  return {
    url: `unix:${path}`,
    headers: { 'gateway-user': encodeURIComponent(userName()), ...sudo, ...more },
  }
}

async function onTcp(url: string, { user, passwordFile }: PlaceOptions): Promise<Daemon> {
  if (user === undefined && passwordFile === undefined) return { url, headers: {} }
  if (user === undefined || passwordFile === undefined)
    throw new GatewayError('USAGE', {
      what: 'Only one of --user and --password-file is given.',
      why: 'A user needs a password.',
      act: 'Give both or none of them.',
    })
  const login = Buffer.from(`${user}:${await readPasswordFile(passwordFile)}`).toString('base64')
  return { url, headers: { authorization: `Basic ${login}` } }
}

function checked(url: string): string {
  const parsed = /^https?:\/\//.test(url) && URL.canParse(url) ? new URL(url) : null
  // An "@" in the path comes from a password with "/", which ends the host.
  if (parsed !== null && !parsed.pathname.includes('@') && !/[?#]/.test(url)) return url.replace(/\/+$/, '')
  throw new GatewayError('USAGE', {
    what: `--url is not an http:// or https:// URL: ${shownUrl(url)}.`,
    why: 'The daemon answers over HTTP. The URL has no query and no fragment.',
    act: `Write it as ${defaultUrl}.`,
  })
}

export function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run as a user id without a name.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
