// example-cluster.ts: the deployments of config/examples as processes on loopback: their own files, in which only hosts,
// ports, paths and passwords are replaced. A file that says nothing of what is to be replaced is an error.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { answers, freePort } from '../support/mosquitto.ts'
import { atEndOfTest, createProcess, engineFolder, spawnEngine } from './message-engine.ts'
import { newerProgram } from './nats-engine.ts'
import { runNewer, serverScript } from './rabbit-engine.ts'

export const deviceCount = 12
export const passwordOf = (user: string) => `password-of-${user}`

export type ExampleCluster = {
  /** For devices, with TLS. */
  mqttPorts: readonly number[]
  /** PEM. */
  ca: string
  killNode(node: number): Promise<void>
  startNode(node: number): void
  ready(): Promise<void>
  /** gateway.yaml of the example for a gateway whose files are below `folder`. */
  gatewayConfig(folder: string, serviceUrl: string): Promise<string>
}

const count = 3
const indexes = Array.from({ length: count }, (_, index) => index)
const deviceNames = Array.from({ length: deviceCount }, (_, index) => `truck-${index + 7}`)

type Change = readonly [found: string | RegExp, replacement: string]

function exampleText(path: string, changes: readonly Change[]): string {
  let text = readFileSync(new URL(`../../config/examples/${path}`, import.meta.url), 'utf8')
  for (const [found, replacement] of changes) {
    const changed = text.replaceAll(found, replacement)
    if (changed === text) throw new Error(`${path} has no ${String(found)}`)
    text = changed
  }
  return text
}

async function portsOf(): Promise<number[]> {
  const ports: number[] = []
  for (const _ of indexes) ports.push(await freePort())
  return ports
}

type GatewayFiles = {
  example: string
  urls: readonly Change[]
  password: string
  files: Record<string, string>
}

function gatewayConfigs({ example, urls, password, files }: GatewayFiles) {
  return async (folder: string, serviceUrl: string): Promise<string> => {
    const own = Object.entries({ ...files, [password]: `${passwordOf('gateway')}\n` })
    for (const [name, content] of own) await writeFile(join(folder, name), content, { mode: 0o600 })
    const config = join(folder, 'gateway.yaml')
    const text = exampleText(`${example}/gateway.yaml`, [
      ...urls,
      ['/etc/telemetry-gateway/', `${folder}/`],
      ['/var/lib/telemetry-gateway/', `${folder}/`],
      ['200GiB', '1GiB'],
      ['min_free_bytes: 1GiB', 'min_free_bytes: 1MiB'],
      ['https://ingest.example.com', serviceUrl],
      [/credentials: .*/g, 'credentials: { source: environment }'],
      ['127.0.0.1:8080', '127.0.0.1:0'],
    ])
    await writeFile(config, text, { mode: 0o600 })
    return config
  }
}

export async function startNatsExample(): Promise<ExampleCluster> {
  const folder = await engineFolder(atEndOfTest)
  const [ports, monitorPorts, routePorts, mqttPorts] = [
    await portsOf(),
    await portsOf(),
    await portsOf(),
    await portsOf(),
  ]
  const authority = createAuthority()
  const users = exampleText('nats/users.conf', [['REPLACE-gateway', passwordOf('gateway')]])
  const device = /^ {2}\{\n {4}user: truck-7[^]*?^ {2}\}\n/m.exec(users)![0]
  const devices = deviceNames.map((name) =>
    device.replaceAll('truck-7', name).replace(`REPLACE-${name}`, passwordOf(name)),
  )
  const processes = []
  for (const index of indexes) {
    const home = join(folder, `nats-${index + 1}`)
    await mkdir(home)
    const { cert, key } = authority.issue()
    const text = exampleText('nats/nats-server.conf', [
      ['/etc/nats/', `${home}/`],
      ['/var/lib/nats', `${home}/data`],
      ['0.0.0.0:4222', `127.0.0.1:${ports[index]}`],
      ['127.0.0.1:8222', `127.0.0.1:${monitorPorts[index]}`],
      ['0.0.0.0:6222', `127.0.0.1:${routePorts[index]}`],
      ['0.0.0.0:8883', `127.0.0.1:${mqttPorts[index]}`],
      ...routePorts.map((port, at): Change => [`nats-${at + 1}.example.com:6222`, `localhost:${port}`]),
    ])
    const files = { 'node.pem': cert, 'node.key': key, 'ca.pem': authority.ca, 'nats-server.conf': text }
    for (const [name, content] of Object.entries(files)) await writeFile(join(home, name), content)
    await writeFile(
      join(home, 'users.conf'),
      users.replace(device, () => devices.join('')),
    )
    const env = { NATS_NODE: `nats-${index + 1}`, NATS_ADMIN_PASSWORD: 'p0' }
    processes.push(
      createProcess(`nats-${index + 1}`, () =>
        spawnEngine(newerProgram, ['-c', join(home, 'nats-server.conf')], env),
      ),
    )
  }
  const client = authority.issue({ names: ['gateway'] })
  return clusterOf({
    processes,
    mqttPorts,
    ca: authority.ca,
    async isReady(node) {
      const { ok } = await fetch(`http://127.0.0.1:${monitorPorts[node]}/healthz`)
      return ok
    },
    gatewayConfig: gatewayConfigs({
      example: 'nats',
      urls: ports.map((port, at) => [`nats-${at + 1}.example.com:4222`, `localhost:${port}`]),
      password: 'nats-password',
      files: { 'nats-ca.pem': authority.ca, 'gateway.pem': client.cert, 'gateway.key': client.key },
    }),
  })
}

export async function startRabbitExample(): Promise<ExampleCluster> {
  const folder = await engineFolder(atEndOfTest)
  const [ports, monitorPorts, nodePorts, mqttPorts] = [
    await portsOf(),
    await portsOf(),
    await portsOf(),
    await portsOf(),
  ]
  const namesPort = await freePort()
  const authority = createAuthority()
  const { cert, key } = authority.issue()
  const nodeName = (index: number) => `rabbit-${index + 1}@localhost`
  await writeFile(join(folder, '.erlang.cookie'), 'EXAMPLECOOKIE', { mode: 0o400 })
  await writeFile(join(folder, 'enabled_plugins'), exampleText('rabbitmq/enabled_plugins', []))
  const devices = deviceNames.map((name) => JSON.parse(devicesOf(name)) as Record<string, unknown[]>)
  const allDevices = Object.fromEntries(
    ['users', 'permissions', 'topic_permissions'].map((part) => [part, devices.flatMap((one) => one[part]!)]),
  )
  await writeFile(join(folder, 'devices.json'), JSON.stringify(allDevices))
  const env = (index: number) => ({
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/mnt',
    LANG: 'C.UTF-8',
    ERL_EPMD_PORT: String(namesPort),
    RUNNING_UNDER_SYSTEMD: 'true',
    RABBITMQ_NODENAME: nodeName(index),
    RABBITMQ_DIST_PORT: String(nodePorts[index]),
    RABBITMQ_CONFIG_FILE: `/mnt/rabbit-${index + 1}/rabbitmq.conf`,
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_ENABLED_PLUGINS_FILE: '/mnt/enabled_plugins',
    RABBITMQ_MNESIA_BASE: `/mnt/rabbit-${index + 1}/data`,
    RABBITMQ_LOG_BASE: `/mnt/rabbit-${index + 1}/log`,
    RABBITMQ_GENERATED_CONFIG_DIR: `/mnt/rabbit-${index + 1}/generated`,
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
  })
  for (const index of indexes) {
    const home = join(folder, `rabbit-${index + 1}`)
    await mkdir(home)
    const text = exampleText('rabbitmq/rabbitmq.conf', [
      [/rabbit@rabbit-(\d)/g, 'rabbit-$1@localhost'],
      ['/etc/rabbitmq/', `/mnt/rabbit-${index + 1}/`],
      ['0.0.0.0:5671', `127.0.0.1:${ports[index]}`],
      ['0.0.0.0:8883', `127.0.0.1:${mqttPorts[index]}`],
      ['management.tcp.port = 15672', `management.tcp.port = ${monitorPorts[index]}`],
      ['disk_free_limit.absolute = 20GB', 'disk_free_limit.absolute = 50MB'],
    ])
    const files = { 'node.pem': cert, 'node.key': key, 'ca.pem': authority.ca, 'rabbitmq.conf': text }
    for (const [name, content] of Object.entries(files)) await writeFile(join(home, name), content)
  }
  await chmod(folder, 0o755)
  const names = createProcess('epmd', () =>
    runNewer(folder, '/usr/bin/epmd', ['-address', '127.0.0.1', '-port', String(namesPort)], env(0)),
  )
  atEndOfTest(() => names.end('SIGKILL'))
  names.start()
  await answers(namesPort)

  async function control(...words: readonly string[]): Promise<void> {
    const child = runNewer(folder, '/usr/lib/rabbitmq/bin/rabbitmqctl', words, env(0))
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said += String(chunk)))
    const [status] = (await once(child, 'exit')) as [number]
    if (status !== 0) throw new Error(`rabbitmqctl ${words.join(' ')}: ${said}`)
  }

  const cluster = await clusterOf({
    processes: indexes.map((index) =>
      createProcess(nodeName(index), () => runNewer(folder, serverScript, [], env(index))),
    ),
    mqttPorts,
    ca: authority.ca,
    async isReady(node) {
      await Promise.all([answers(ports[node]!), answers(mqttPorts[node]!)])
      return true
    },
    gatewayConfig: gatewayConfigs({
      example: 'rabbitmq',
      urls: ports.map((port, at) => [`rabbit-${at + 1}.example.com:5671`, `localhost:${port}`]),
      password: 'rabbitmq-password',
      files: { 'rabbitmq-ca.pem': authority.ca },
    }),
  })
  // The commands of README.md, in its order.
  await control('await_online_nodes', String(count))
  await control('add_user', 'gateway', passwordOf('gateway'))
  const rights = exampleText('rabbitmq/README.md', []).match(/set_permissions gateway '(.*)' '(.*)' '(.*)'/)!
  await control('set_permissions', 'gateway', ...rights.slice(1))
  await control('delete_user', 'guest')
  await control('import_definitions', '/mnt/devices.json')
  return cluster
}

function devicesOf(name: string): string {
  const renamed: Change[] = name === 'truck-7' ? [] : [['truck-7', name]]
  return exampleText('rabbitmq/devices.json', [...renamed, [`REPLACE-${name}`, passwordOf(name)]])
}

type Parts = Pick<ExampleCluster, 'mqttPorts' | 'ca' | 'gatewayConfig'> & {
  processes: readonly ReturnType<typeof createProcess>[]
  isReady(node: number): Promise<boolean>
}

async function clusterOf({ processes, isReady, ...rest }: Parts): Promise<ExampleCluster> {
  atEndOfTest(async () => {
    await Promise.all(processes.map(({ end }) => end('SIGKILL')))
  })
  const ready = async () => {
    for (const node of indexes) await eventually(() => isReady(node).catch(() => false))
  }
  for (const one of processes) one.start()
  await Promise.race([ready(), ...processes.map(({ failure }) => failure())])
  return {
    ...rest,
    killNode: (node) => processes[node]!.end('SIGKILL'),
    startNode: (node) => processes[node]!.start(),
    ready,
  }
}
