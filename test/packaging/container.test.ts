// The container files. No container is built or run here: a linter reads the Containerfile, and names and paths of the
// compose example are compared with what they refer to.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { validate } from 'dockerfile-utils'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

const root = resolve(import.meta.dirname, '../..')
const folder = join(root, 'config/container')
const textOf = (name: string) => readFile(join(folder, name), 'utf8')

type Service = {
  image: string
  depends_on?: string[]
  volumes?: string[]
  ports?: string[]
  stop_grace_period?: string
}
type Compose = { services: Record<string, Service>; volumes: Record<string, null> }

const containerfile = await textOf('Containerfile')
const compose = parse(await textOf('compose.yaml')) as Compose

describe('the Containerfile', () => {
  test('has no finding of the linter', () => {
    expect(validate(containerfile)).toEqual([])
  })

  test('would have one for an instruction that does not exist', () => {
    expect(validate(containerfile.replace('EXPOSE', 'EXPOSES'))).not.toEqual([])
  })

  test('runs the daemon as its user, from a base with a version', () => {
    const lines = containerfile.split('\n')
    expect(lines.filter((line) => line.startsWith('FROM'))).toEqual([
      expect.stringMatching(/^FROM \S+:\d+\S*$/),
    ])
    expect(lines.filter((line) => line.startsWith('USER'))).toEqual(['USER telemetry-gateway'])
    expect(containerfile).toContain('CMD ["run", "--config", "/etc/telemetry-gateway/gateway.yaml"]')
  })

  test('leaves no list of packages, and downloads nothing but packages of the base', () => {
    const installed = /RUN apt-get update[^]*?\n\n/.exec(containerfile)?.[0] ?? ''
    expect(installed).toMatch(/--no-install-recommends[^]*rm -rf .*\/var\/lib\/apt\/lists/)
    expect(containerfile).not.toMatch(/^ADD|curl|wget/m)
  })
})

describe('the compose example', () => {
  test('mounts files that exist and volumes that it declares', () => {
    const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)
    const sources = mounted.map((volume) => volume.split(':')[0] ?? '')
    const unknown = sources.filter((source) =>
      source.startsWith('.') ? !existsSync(join(folder, source)) : !Object.hasOwn(compose.volumes, source),
    )
    expect([sources.length, unknown]).toEqual([9, []])
  })

  test('names a version of each image of others', () => {
    const images = Object.values(compose.services).map(({ image }) => image)
    expect(
      images.filter((image) => image !== 'telemetry-gateway' && !/:v?\d+\.\d+\.\d+$/.test(image)),
    ).toEqual([])
  })

  test('shows the page and Grafana to this machine only', () => {
    const ports = Object.values(compose.services).flatMap((service) => service.ports ?? [])
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual(['1883:1883'])
  })

  test('waits longer for the daemon to stop than the daemon takes', async () => {
    const { properties } = JSON.parse(await readFile(join(root, 'config/gateway.schema.json'), 'utf8')) as {
      properties: { ops: { properties: { stop_deadline: { default: string } } } }
    }
    expect(properties.ops.properties.stop_deadline.default).toBe('30s')
    expect(compose.services['gateway']?.stop_grace_period).toBe('45s')
  })

  test('has Prometheus scrape the gateway under the job of the alert rules, and Grafana ask it', async () => {
    const prometheus = parse(await textOf('prometheus.yaml')) as {
      scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[]
      rule_files: string[]
    }
    expect(prometheus.scrape_configs).toEqual([
      { job_name: 'telemetry-gateway', static_configs: [{ targets: ['gateway:8080'] }] },
    ])
    const mounted = compose.services['prometheus']?.volumes?.map((volume) => volume.split(':')[1]) ?? []
    expect(mounted).toEqual(expect.arrayContaining(prometheus.rule_files))
    const { datasources } = parse(await textOf('grafana-datasource.yaml')) as {
      datasources: { url: string }[]
    }
    expect(datasources.map(({ url }) => new URL(url).hostname)).toEqual(['prometheus'])
    const { providers } = parse(await textOf('grafana-dashboards.yaml')) as {
      providers: { options: { path: string } }[]
    }
    const dashboard = compose.services['grafana']?.volumes?.find((volume) =>
      volume.includes('grafana-dashboard.json'),
    )
    expect(dirname(dashboard?.split(':')[1] ?? '')).toBe(providers[0]?.options.path)
    expect(basename(dashboard?.split(':')[0] ?? '')).toBe('grafana-dashboard.json')
  })
})
