// control-files.ts: what dpkg reads of a package: control, sums, maintainer scripts; copyright and changelog.

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatVersion } from '../../src/spool/spool.ts'
import { configCheckArchive } from './config-check-archive.ts'
import { licenceOf, manifestsBelow } from './package-manifests.ts'
import { gzipped, type PackageOptions } from './package-tree.ts'

const maintainer = 'Telemetry gateway maintainers <maintainers@telemetry-gateway.invalid>'

/**
 * What Node needs of the machine, and the maintainer scripts: all of it is on a new Debian. A depot without internet could
 * not install a package that recommends more.
 */
const depends = 'init-system-helpers (>= 1.51), libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8), passwd'

/** The name of a build for dpkg: `~` comes before the end, so 0.2.0-dev.9 is older than 0.2.0. */
export function debVersion(name: string): string {
  return name.replace('-', '~')
}

export async function writeControlFiles(
  tree: string,
  { root, architecture, date, ...options }: PackageOptions,
): Promise<void> {
  const version = debVersion(options.version)
  const documents = join(tree, 'usr/share/doc/telemetry-gateway')
  writeFileSync(join(documents, 'copyright'), copyrightText(tree))
  writeFileSync(join(documents, 'changelog.gz'), gzipped(changelogText(version, date)))
  const control = join(tree, 'DEBIAN')
  mkdirSync(control)
  const files = filesOf(tree)
  const kibibytes = files.reduce((sum, file) => sum + Math.ceil(statSync(join(tree, file)).size / 1024), 0)
  writeFileSync(
    join(control, 'control'),
    `Package: telemetry-gateway
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kibibytes}
Depends: ${depends}
Recommends: systemd
Suggests: bash-completion, time-daemon
Section: net
Priority: optional
Description: gateway between the vehicles of a depot and an ingestion service
 Receives vehicle telemetry over MQTT, stores it on disk before it acknowledges
 it, and delivers it in signed batches to the Telemetry Ingestion Service. It
 keeps data through outages of days, power cuts and full disks.
 .
 The package has its own Node.js; none on the machine is used.
`,
  )
  const sums = files.map(
    (file) =>
      `${createHash('md5')
        .update(readFileSync(join(tree, file)))
        .digest('hex')}  ${file}\n`,
  )
  writeFileSync(join(control, 'md5sums'), sums.join(''))
  writeFileSync(join(control, 'config-check.tar.gz'), await configCheckArchive(root, date))
  for (const name of ['preinst', 'postinst', 'prerm', 'postrm'])
    writeFileSync(
      join(control, name),
      scriptText(join(root, 'config/packaging/deb', name), { version, architecture }),
    )
}

function scriptText(
  path: string,
  { version, architecture }: { version: string; architecture: string },
): string {
  const text = readFileSync(path, 'utf8')
    .replaceAll('@VERSION@', version)
    .replaceAll('@ARCHITECTURE@', architecture)
    .replaceAll('@SPOOL_FORMAT@', String(formatVersion))
  if (/@[A-Z_]+@/.test(text)) throw new Error(`${path} has a name that nothing replaces.`)
  return text
}

/** Sorted; links are not followed. */
function filesOf(tree: string, folder = ''): string[] {
  return readdirSync(join(tree, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return path === 'DEBIAN' ? [] : filesOf(tree, path)
      return entry.isFile() ? [path] : []
    })
    .sort()
}

function copyrightText(tree: string): string {
  const modules = join(tree, 'usr/lib/telemetry-gateway/node_modules')
  const packages = manifestsBelow(modules).map(
    ({ manifest }) => `  ${manifest.name} ${manifest.version}: ${licenceOf(manifest)}`,
  )
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: telemetry-gateway

Files: *
Copyright: The authors of the telemetry gateway
License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/telemetry-gateway/node_modules/*
Copyright: The authors of each package, as its folder says
License: various
 The text of each licence is in /usr/lib/telemetry-gateway/THIRD-PARTY-NOTICES.
 These packages come with the gateway:
${[...new Set(packages)]
  .sort()
  .map((line) => ` ${line}`)
  .join('\n')}
`
}

function changelogText(version: string, date: number): string {
  const time = new Date(date * 1000).toUTCString().replace('GMT', '+0000')
  return `telemetry-gateway (${version}) stable; urgency=medium

  * See /usr/share/doc/telemetry-gateway/CHANGELOG.md and UPGRADING.md.

 -- ${maintainer}  ${time}
`
}
