"""The three profiles of an agent: what is forbidden, sealed, and open to its commands.

`strict` reads narrowly: only the workspace. `standard` is for ordinary work: commands read what
programs need, and write caches and temporary folders; the rest is asked about. `open` also reads
everything that is not forbidden without a question.
"""

import msgspec


def _at_home(names: str) -> tuple[str, ...]:
    return tuple(f"~/{name}" for name in names.split())


# What must never be touched unasked: keys, tokens, what people typed and browsed.
_HOME_SECRETS = _at_home("""
    .ssh .gnupg .pki .aws .azure .gcloud .config/gcloud .oci .kube .docker .config/containers
    .config/gh .config/hub .config/glab-cli .netrc .authinfo .authinfo.gpg .git-credentials
    .config/git/credentials .npmrc .yarnrc .yarnrc.yml .pypirc .config/pip .pip .cargo/credentials
    .cargo/credentials.toml .gem/credentials .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties .nuget/NuGet .composer/auth.json .config/composer/auth.json
    .terraform.d .terraformrc .vault-token .config/op .password-store .local/share/keyrings
    .config/keepassxc .config/Bitwarden .config/1Password .local/share/kwalletd .config/rclone
    .pgpass .my.cnf .mylogin.cnf .dbshell .s3cfg .boto .config/doctl .config/heroku .fly
    .config/netlify .config/vercel .local/share/com.vercel.cli .config/configstore .databricks.cfg
    .huggingface .cache/huggingface/token .config/anthropic .claude .claude.json .codex .gemini
    .config/openai .config/github-copilot .config/gcloud .config/sops .age .config/age .sops
    .mozilla .config/mozilla .thunderbird .config/google-chrome .config/google-chrome-beta
    .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera
    .config/Signal .config/Slack .config/discord .local/share/TelegramDesktop
    Library/Keychains Library/Cookies Library/Mail Library/Messages
    snap/firefox snap/chromium .var/app
    .bash_history .zsh_history .history .local/share/fish/fish_history .config/fish/fish_history
    .python_history .node_repl_history .psql_history .mysql_history .sqlite_history .lesshst
    .viminfo .wget-hsts .irb_history .rediscli_history .local/state/bash
    .config/autostart .config/systemd .local/share/systemd .local/share/applications
    .xauthority .Xauthority .ICEauthority .dbus .local/share/Trash
    .cache/mozilla .cache/google-chrome .cache/google-chrome-beta .cache/chromium
    .cache/BraveSoftware .cache/microsoft-edge .cache/vivaldi .cache/opera .cache/thunderbird
    .cache/evolution .cache/tracker3 .hex/hex.config .ivy2/.credentials .sbt/.credentials
    .pub-cache/credentials.json .config/dart .kaggle .config/kaggle .ngrok2 .config/ngrok
    .sentryclirc .cloudflared .wrangler .config/.wrangler .config/stripe .railway .config/railway
    .supabase .snowflake .snowsql .dbt/profiles.yml .config/hcloud .config/scw .bluemix .linode-cli
    .config/linode-cli .config/argocd .config/helm/registry .saml2aws .okta .smbcredentials .msmtprc
    .config/msmtp .fetchmailrc .offlineimaprc .ollama/id_ed25519 .local/share/opencode/auth.json
    .qwen/oauth_creds.json .config/goose/secrets.yaml .config/Code/User/globalStorage
    .config/Cursor/User/globalStorage
""")
# How to have a program of the owner's that waits for work do some: it is outside of all walls.
_WAITING = _at_home("""
    .gradle/daemon .m2/mvnd .kotlin/daemon .cache/bazel .local/share/jupyter/runtime .jupyter
""")
_SYSTEM_SECRETS = tuple(
    """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/sudoers /etc/sudoers.d
    /etc/ssl/private /etc/ssh/ssh_host_rsa_key /etc/ssh/ssh_host_dsa_key
    /etc/ssh/ssh_host_ecdsa_key /etc/ssh/ssh_host_ed25519_key /etc/security/opasswd
    /etc/krb5.keytab /etc/NetworkManager/system-connections /etc/wireguard /etc/openvpn /etc/ppp
    /etc/docker /etc/kubernetes /etc/letsencrypt /etc/pki/tls/private /etc/mysql /etc/postgresql
    /etc/ipsec.secrets /etc/ipsec.d /etc/crypttab /etc/rsyncd.secrets /var/lib/docker
    /var/lib/containerd /var/lib/kubelet /var/log /var/mail /var/spool /var/backups
    /var/lib/private /var/lib/postgresql /var/lib/mysql /run/docker.sock /run/containerd
    /run/podman /run/secrets /run/user /boot /lost+found
    """.split()
)
# What an ordinary agent does not write, whatever the mode.
_SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin"),
    *("/snap", "/usr", "/var/lib", "/var/cache", "/var/log", "/run", "/System", "/Library"),
)
# What lies on people's PATH, or says what runs, inside of what package managers keep.
_KEPT = _at_home("""
    .cargo/bin .cargo/env .cargo/config .cargo/config.toml go/bin .pub-cache/bin .m2/extensions.xml
    .m2/settings.xml .m2/settings-security.xml
""")
# What programs are made of, and what they ask for when they start.
_LEGIBLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix", "/snap", "/etc"),
    *("/var/lib/dpkg", "/var/lib/alternatives", "/var/cache/fontconfig", "/run/systemd/resolve"),
    *("/System", "/Library", "/opt/homebrew", "/home/linuxbrew/.linuxbrew", "/usr/local"),
    *_at_home("""
    .pyenv .nvm .rustup .rbenv .rvm .asdf .sdkman .volta .bun .deno .fnm .jenv .nodenv .goenv
    .phpenv .plenv .tfenv .ghcup .opam .julia .dotnet .conda miniconda3 anaconda3 mambaforge
    miniforge3 micromamba .linuxbrew .local/bin .local/lib .local/pipx .local/share/uv
    .local/share/mise .local/share/rtx .local/share/pipx .local/share/pnpm .local/share/fnm
    .local/share/virtualenvs .virtualenvs .local/share/pypoetry .yarn .poetry .nix-profile
    .cache .npm .cargo .m2 .pub-cache .nuget/packages go .gitconfig .config/git
    .config/pypoetry .terminfo .inputrc .local/share/man
    """),
)
# What package managers keep, and temporary folders. What lies on people's PATH, and what they run
# at each start (~/.sbt/1.0/plugins, ~/.mix/archives), is not among them; `caches` has the rest.
_WRITABLE = (
    *("/tmp", "/var/tmp", "/dev/shm"),
    *_at_home("""
    .cache .local/state/dragoman-commands .npm .cargo .cargo/registry .cargo/git .m2
    .m2/repository go go/pkg .gradle/caches .ivy2 .sbt/launchers .nuget/packages .deno/deps
    .node-gyp .electron-gyp .pub-cache .pub-cache/hosted .hex Library/Caches
    .terraform.d/plugin-cache
    """),
)


class Profile(msgspec.Struct, frozen=True):
    """One profile. Paths may begin with `~`."""

    name: str
    forbidden: tuple[str, ...]  # in every mode
    sealed: tuple[str, ...] = ()  # never written, in no mode
    legible: tuple[str, ...] = ()  # commands may read and run it
    writable: tuple[str, ...] = ()  # commands may write it
    reads_outside: bool = False
    network: bool = True


STRICT = Profile(
    "strict",
    (
        *("/etc", "/root", "/home", "/usr", "/bin", "/sbin", "/lib", "/opt", "/boot"),
        *("/dev", "/proc", "/sys", "/var", "/tmp"),
        *("~/.ssh", "~/.gnupg", "~/.aws", "~/.config"),
    ),
)
_FORBIDDEN = (*_HOME_SECRETS, *_WAITING, *_SYSTEM_SECRETS)
STANDARD = Profile("standard", _FORBIDDEN, (*_SYSTEM, *_KEPT), _LEGIBLE, _WRITABLE)
OPEN = Profile("open", _FORBIDDEN, _KEPT, _LEGIBLE, _WRITABLE, reads_outside=True)
PROFILES = {profile.name: profile for profile in (STRICT, STANDARD, OPEN)}


def strangers(home: str) -> tuple[str, ...]:
    """The homes of other users, as this machine knows them: forbidden in every profile."""
    import os
    import pwd

    own = os.path.realpath(home)
    found = []
    for entry in pwd.getpwall():
        place = os.path.realpath(entry.pw_dir)
        ordinary = place.startswith(("/home/", "/root", "/Users/", "/export/home/"))
        if ordinary and place != own and not own.startswith(place + "/"):
            found.append(place)
    return tuple(dict.fromkeys(found))
