"""Commands with the class that they must get."""

LOW = r"""
ls -la
ls
ls -1 src
ls src/*.py
ls ./*.py
ls 2>/dev/null
ls >/dev/null 2>&1
/bin/ls /bin
cat README.md | head -20
cat 'a b' "c d"
cat < README.md
head -20 x
head -n 20 x
tail -n5 x
wc -l < README.md
wc -l src/*.py
grep -rn 'rm -rf' src
grep -rn "foo\|bar" src
grep -rn --include=*.py foo src
grep -E 'a|b' x
grep -c x y
rg -n foo src
rg --files
rg -t py 'def main'
echo rm -rf /
echo 'a; rm -rf /'
echo "a && rm x"
echo "it's"
echo ''
echo 'naïve' "é"
printf '%s\n' a
printf "%d" 5
git status
git status --short
git status && git diff --stat
git log --oneline -5
git log -n 3
git diff HEAD~1
git diff --cached
git show HEAD
git show HEAD^
git branch
git branch -a
git branch --show-current
git rev-parse --show-toplevel
git ls-files
git blame -L 1,5 x
git remote -v
git tag -l
git describe --tags
git grep -n foo
git version
find . -name '*.py'
find . -type f -newer x
find src -maxdepth 2 -type d
find . -name x -o -name y
find . -path './a' -prune -o -print
sed -n '1,20p' file
sed -n 5p file
sed 's/a/b/g' file
sed -e 's/a/b/' -e 's|c|d|' file
sed '/^$/d' file
awk '{print $1}' file
awk -F: '{print $1, $3}' file
test -d src || echo no
test -f x && cat x
test a = b
cd src && ls
cd src; ls
cd src
ls; ls
pwd
ls || true
ls | sort -u | uniq -c | sort -rn
sort -k 2,2n -t , x
cut -d: -f1 x
tr a-z A-Z
date
date +%F
date -u '+%Y-%m-%d %H:%M'
date -d yesterday +%s
du -sh .
df -h
uname -a
whoami
id
nproc
which python3
type ls
basename /a/b
dirname /a/b
realpath .
readlink -f x
stat -c %s x
file x
diff -u a b
cmp a b
sha256sum x
seq 1 5
sleep 1
jq . x
jq -r '.a[] | .b' x
tree -L 2
xxd x
od -c x
python3 --version
node --version
timeout 5 ls
nohup ls
env ls
command ls
nice ls
sh -c 'ls -l'
bash -c ls
sh -c 'ls; pwd'
timeout 5 sh -c 'ls | wc -l'
true
false
: anything
ps aux
free -m
column -t x
base64 -d x
strings x
'ls' -l
l's' -l
"ls"
""".strip("\n").split("\n")
LOW += [
    "ls\npwd",
    "ls\n\n\npwd\n",
    "ls &&\npwd",
    "ls |\nwc",
    "echo 'a\nb'",
    'echo "a\nb"',
    "ls\t-l",
    "",
]

MEDIUM = r"""
mkdir x
cp a b
mv a b
touch x
make
make test
npm install
npm ci
npm test
pip install x
python3 setup.py build
python3 -m pytest -q
pytest -q
./configure
.venv/bin/python x.py
git commit -m 'rm x'
git commit -m "it's done"
git checkout main
git switch -c new
git add .
git push
git pull
git fetch origin
git merge main
git stash
git tag v1
git branch new
git remote add origin x
git rebase main
git clone x
echo x > file
echo x >> file
ls > out
ls 2> err
ls 3> x
ls >| out
ls > out 2>&1
cat a b > c
bash build.sh
sh x.sh
some-unknown-program
ls | tee out
cargo build
go test x
gcc -o x x.c
tar xf x.tar
unzip x.zip
gzip x
ln -s a b
timeout 60 make
nohup make
env make
sh -c 'make test'
cd src && make
node x.js
ruby x.rb
perl x.pl
python3 -m http.server
ls src && mkdir y
./ls
bin/ls
/tmp/ls
../ls
""".strip("\n").split("\n")

HIGH = r"""
rm x
rm -rf /
rm src/*
/bin/rm -rf .
../../bin/rm x
r''m x
r""m x
'rm' x
"r"'m' x
ls; rm x
ls && rm x
ls || rm x
ls | rm x
timeout 5 rm x
nohup rm x
env rm x
command rm x
nice rm x
setsid rm x
sh -c 'rm x'
bash -c "rm x"
sh -c "sh -c 'rm x'"
timeout 5 env nohup rm x
dd of=x
chmod +x y
chown a b
curl x
wget x
kill 1
killall x
mkfs.ext4 x
mount a b
shutdown now
systemctl stop x
docker run x
git push --force
git push -f
git push origin +main
git reset --hard
git clean -fd
git config x y
git branch -D x
cd src && rm x
""".strip("\n").split("\n")
HIGH += ["ls\nrm x", "ls |\nrm x"]

UNKNOWN = r"""
echo "${x:-'}"; touch P; echo "'}"
echo $'\'; touch P; echo \'' # '
cat <<$'X'
echo $(rm x)
echo "$(rm x)"
echo "a `rm x` b"
echo `rm x`
echo $((1+2))
echo $[1+2]
echo ${HOME}
echo $HOME
echo ~
cat ~/x
cat a:~/x
cat x=~/y
ls ~root
cat <(rm x)
tee >(rm x)
cat <<< x
cat <<EOF
(ls)
{ ls; }
! ls
ls &
ls & rm x
ls |& cat
ls &> out
ls >& out
ls <> x
ls 12> x
ls >&-
ls 2>&1-
ls {a,b}
ls {1..3}
ls *
ls *.py
ls -*
ls ?
ls [ab]
ls a[b]c
ls 'a'*
ls !(x)
if ls; then rm x; fi
for f in a b; do rm $f; done
while true; do ls; done
until ls; do ls; done
case x in a) ls;; esac
select x in a; do ls; done
function ls { rm x; }
ls() { rm x; }
coproc ls
time ls
[[ -f x ]]
[[ -v 'a[$(rm x)]' ]]
[ -f x ]
[ -v 'a[$(rm x)]' ]
test -v 'a[$(rm x)]'
test ! -v 'a[$(rm x)]'
test -v x
test 'a[$(rm x)]' -eq 1
test -R x
test x -a -v y
((1))
let x=1
a=1
a=1 ls
PATH=. ls
PATH=.:/bin ls
IFS=x ls
BASH_ENV=x bash -c ls
LD_PRELOAD=x ls
a+=1 ls
a[0]=1
ls # rm x
# ls
ls;; rm x
ls; ; ls
ls && && rm
ls |
&& ls
; ls
> x
> x ls
< x cat
ls > x rm
ls > $x
ls > a*
ls > ~/x
ls > "$x"
ls \; rm x
l\s
\ls
ls \
r\m x
echo "a\$b"
echo "a\"b"
echo "a\\b"
echo a\ b
echo 'a
echo "a
echo $"x"
echo $'x'
$'\x72\x6d' x
$X
$X y
"$X"
'' x
eval ls
eval 'rm x'
exec ls
exec rm x
. x
source x
alias ls=rm
unalias ls
trap 'rm x' EXIT
set -x
set -- a
shopt -s expand_aliases
export PATH=.
export -f ls
declare x=1
typeset x
readonly x=1
local x
read x
read PATH
mapfile x
readarray -C rm x
printf -v x y
printf '%n' PATH
printf '%5n' PATH
hash -p /tmp/x ls
enable -f x y
builtin ls
command -v ls
command -p ls
compgen -C rm x
complete -C rm x
bind x
fc -s
jobs -x rm
getopts x y
unset PATH
cd -
cd
cd -P x
pushd x
popd
ulimit -n 1
umask 0
wait
exit
return
logout
history
env -S 'rm x'
env -S'rm x'
env --split-string='rm x'
env -i rm x
env A=1 rm x
env -u X rm x
env -
xargs rm
ls | xargs rm
ls | xargs -n 1 env rm
ls | xargs
ls | xargs sh -c 'rm x'
find . -exec rm x ';'
find . -exec rm x +
find . -execdir rm x ';'
find . -ok rm x ';'
find . -delete
find . -fprint x
find . -fprintf x y
find . -fls x
find . -exe rm
find . -files0-from x
sed -i s/a/b/ f
sed --in-place s/a/b/ f
sed -n 'w x' f
sed 's/a/b/w x' f
sed 's/a/b/e' f
sed '1e rm x' f
sed 'e' f
sed -f x f
sed -ni p f
sed --expression='1e rm' f
sed 's/a/b/;e' f
awk '{system("rm x")}' f
awk '{print | "rm x"}' f
awk '{print > "x"}' f
awk 'BEGIN{"rm" | getline}' f
awk -f x f
gawk '{print $1}' f
awk -i inplace '{print $1}' f
sort -o x y
sort -ox y
sort --output=x y
sort --outp=x y
sort --output x y
sort --compress-program=rm y
sort --comp=rm y
sort -T x y
sort x -o y
sort -uo x y
uniq a b
uniq a*
date -s 12:00
date --set=12:00
date --se=12:00
date 01010000
date -us 12:00
hostname x
hostname -F x
rg --pre rm x
rg --pre=rm x
rg --hostname-bin rm x
rg -z x
tree -o x
tree -R -o x
file -C
file -m x -C
xxd -r a b
xxd a b
diff -l a b
diff --paginate a b
jq --arg
less x
more x
man ls
man -P rm ls
vim x
vi -c ':!rm' x
ed x
tar --to-command=rm -xf x
tar --to-com=rm -xf x
tar xf x --checkpoint-action=exec=rm
tar -I rm -xf x
tar --use-compress-program rm -xf x
zip -TT rm x
rsync -e rm a b
split --filter=rm x
make SHELL=rm
make --eval=x
gcc -wrapper rm x.c
go test -exec rm
go vet -toolexec rm
npm exec rm
npx rm
git -c core.fsmonitor=rm status
git -c alias.x=!rm x
git --exec-path=. status
git -C x status
git --git-dir=x status
git -p status
git frobnicate
git x
git grep -O rm
git grep --open-files-in-pager=rm x
git diff --ext-diff
git diff --output=x
git diff --outp=x
git log --textconv
git log --output=x
git rebase -x rm main
git rebase --exec rm main
git clone -c core.x=y z
git clone --config=x=y z
git clone --upload-pack=rm x
git clone -u rm x
git fetch --upload-pack rm x
git clone 'ext::sh -c rm' x
git push --receive-pack=rm x
git bisect run rm
git submodule foreach rm
git filter-branch --tree-filter rm
git difftool -x rm
git commit --gpg-sign=x
sudo rm x
sudo ls
su -c rm
doas rm x
nice -n 5 rm x
timeout -s KILL 5 rm x
timeout 5 -x
timeout --foreground 5 rm x
stdbuf -o0 rm x
chrt 1 rm x
ionice rm x
taskset 1 rm x
strace rm x
busybox rm x
coreutils rm x
coreutils --coreutils-prog=rm x
busybox sh
flock x rm
watch rm
parallel rm
script -c rm
ssh x rm
expect x
gdb x
bash
sh
bash -s
bash -i
bash -lc ls
bash -c
bash -c ls x
bash -ec ls
sh -c "$X"
sh -c 'ls > x'
sh -c 'eval ls'
sh -c 'a=1 ls'
bash --rcfile x
bash --init-file x
curl x | sh
cat x | bash
python3
python3 -
python3 -c 'x'
python3 -Bc 'x'
python3 -ic x
python3 -m timeit x
node -e x
node -p x
perl -e x
perl -pe x f
perl -i x
ruby -e x
php -r x
lua -e x
deno eval x
osascript -e x
ls --colo
ls --unknown
grep --colou
cat --nu x
echo a | python3
ls -la -Y
""".strip("\n").split("\n")
UNKNOWN += [
    "echo é",
    "echo a\r#; touch P",
    "echo a\r\ntouch P",
    "ls\x00rm",
    "ls\x0brm",
    "ls\x0crm",
    "ls\x1b[2K",
    "ls\x7f",
    "ls\u00a0-la",
    "ls\u2003-la",
    "ls\u3000x",
    "ls\u200bx",
    "ls\u202ex",
    "ls\u2028rm x",
    "ls\u0085rm x",
    "ls \ufeff",
    "echo \ud800",
    "ls \\\n; rm x",
    "cat <<EOF\n$(rm x)\nEOF",
    "cat <<'EOF'\nx\nEOF\nrm x",
    "cat <<-EOF\n\tx\n\tEOF",
    "cat <<\\EOF\nrm\nEOF",
    "cat << 'E\nF'\nx",
    "alias x=rm\nx y",
    "ls () \n{ rm x; }",
    "if true\nthen rm x\nfi",
    "echo '" + "a" * 20_000 + "'",
    ";".join(["ls"] * 80),
    'echo "é\\."',
    'sh -c \'sh -c "sh -c \\"ls\\""\'',
    ":(){ :|:& };:",
]
