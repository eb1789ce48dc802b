// find-daemon.ts: where the daemon of a command is.
//
//   --socket, --url   there
//   --config          the control socket that the config names, or the one at its spool, or the one of the
//                     service if that daemon has the same spool; else ops.listen
//   nothing           the control socket of the service; else where its config says, as with --config; else
//                     http://127.0.0.1:8080
//
// The service is the systemd unit, or the daemon of a container, which has no RuntimeDirectory: its control
// socket is in the spool.
//
// A socket that does not answer, or that the user may not open, is passed over: reading is also possible over
// TCP, and the daemon says there what a change needs.

import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { GatewayError } from '../../std/gateway-error.ts'
import { readUrl } from '../../std/given-url/given-url.ts'
import { shownUrl } from '../../std/shown-url.ts'
import { controlSocketPath, opsUrl } from '../../ops/config.ts'
import { readPasswordFile } from '../terminal/password-argument.ts'
import type { CommandIo } from '../terminal/terminal.ts'
import { whyAbsent, type Search, type TriedPlace } from './absent-daemon.ts'
import { presenceAt, type Daemon } from './daemon-client.ts'

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
/** Config of the service. */
export const serviceConfig = '/etc/telemetry-gateway/gateway.yaml'
const service = { socket: serviceSocket, config: serviceConfig }

type Io = Pick<CommandIo, 'env' | 'stop'>

/** `places`: of the service. */
export async function findDaemon(options: PlaceOptions, io: Io, places = service): Promise<Daemon> {
  const { config, socket, url } = options
  if ([config, socket, url].filter((place) => place !== undefined).length > 1)
    throw new GatewayError('USAGE', {
      what: 'More than one of --config, --socket and --url is given.',
      why: 'Each of them names a daemon.',
      act: 'Give one of them.',
    })
  if (socket !== undefined) return named(`unix:${resolve(socket)}`, io, places)
  if (url?.startsWith('unix:')) return named(url, io, places)
  if (url !== undefined) return onTcp(checked(url), options)
  const search = createSearch(io, config ?? places.config)
  if (config !== undefined) return ofConfig(search, options, places)
  for (const path of serviceSockets(places, io)) {
    const found = await search.on(path)
    if (found !== null) return found
  }
  return ofServiceConfig(search, options, places)
}

/** A command may run in the unit itself, or in another unit with a RuntimeDirectory. */
function serviceSockets({ socket }: typeof service, { env }: Io): string[] {
  const runtimeDirectory = env['RUNTIME_DIRECTORY'] ?? ''
  return runtimeDirectory === '' ? [socket] : [controlSocketPath({ spoolPath: '', runtimeDirectory }), socket]
}

function named(url: string, io: Io, places: typeof service): Daemon {
  const path = url.slice('unix:'.length)
  const search = createSearch(io, places.config)
  return search.blame(onSocket(path, io), { isService: path === places.socket })
}

/** Without a config that can be read, a daemon may still answer at the default address. */
async function ofServiceConfig(
  search: DaemonSearch,
  options: PlaceOptions,
  places: typeof service,
): Promise<Daemon> {
  try {
    return await ofConfig(search, options, places)
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.code.startsWith('CONFIG_')) throw error
    return search.blame(await onTcp(defaultUrl, options), { isService: true })
  }
}

async function ofConfig(
  search: DaemonSearch,
  options: PlaceOptions,
  places: typeof service,
): Promise<Daemon> {
  // Loaded late: it brings the schema of every stage.
  const { loadDaemonPlaces } = await import('../../config/config.ts')
  const { io, config } = search
  const { listen, controlSocket, spoolPath } = await loadDaemonPlaces(config, { env: io.env })
  const atSpool = controlSocketPath({ spoolPath })
  const sockets = controlSocket === null ? [atSpool, ...serviceSockets(places, io)] : [controlSocket]
  for (const path of sockets) {
    // Another gateway may be the service of this machine.
    const found = await search.on(path, { 'gateway-spool': encodeURIComponent(spoolPath) })
    if (found !== null) return found
  }
  return search.blame(await onTcp(opsUrl(listen), options), { isService: options.config === undefined })
}

/** Tries sockets and notes where none answered, for the text about a daemon that is not found. */
type DaemonSearch = {
  io: Io
  config: string
  on(path: string, headers?: Daemon['headers']): Promise<Daemon | null>
  blame(daemon: Daemon, options: Pick<Search, 'isService'>): Daemon
}

function createSearch(io: Io, config: string): DaemonSearch {
  const tried: TriedPlace[] = []
  return {
    io,
    config,
    async on(path, headers = {}) {
      const daemon = onSocket(path, io, headers)
      const presence = await presenceAt(daemon, io.stop)
      if (presence.answers) return daemon
      tried.push({ place: `the socket ${path}`, code: presence.code })
      return null
    },
    blame: (daemon, { isService }) => ({
      ...daemon,
      whyAbsent: (code) => {
        const last = { place: daemon.url.replace(/^unix:/, 'the socket '), code }
        return whyAbsent({ tried: [...tried, last], config, isService }, io.env)
      },
    }),
  }
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
  const given = readUrl(url, ['http:', 'https:'])
  // An "@" in the path comes from a password with "/", which ends the host.
  const isWhole = typeof given !== 'string' && !given.url.pathname.includes('@') && !/[?#]/.test(url)
  if (isWhole) return url.replace(/\/+$/, '')
  throw new GatewayError('USAGE', {
    what: `--url is not an http:// or https:// URL: ${shownUrl(url)}.`,
    why:
      typeof given === 'string'
        ? `It ${given}.`
        : 'The daemon answers over HTTP. The URL has no query and no fragment.',
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
