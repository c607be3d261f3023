# Installs the commands, their manual pages and their completions; cargo does everything else.
#
#     make install [PREFIX=/usr/local] [DESTDIR=] [RELEASE_URL=]
#
# If RELEASE_URL is given, the commands and their manual pages name it as the home page.

PREFIX ?= /usr/local
override to := $(DESTDIR)$(PREFIX)
target := $(or $(CARGO_TARGET_DIR),target)

build:
	cargo build --release --locked -p rmz -p cpz

install: build
	install -d $(to)/bin $(to)/share/man/man1 $(to)/share/bash-completion/completions \
		$(to)/share/zsh/site-functions $(to)/share/fish/vendor_completions.d
	install $(target)/release/rmz $(target)/release/cpz $(to)/bin
	install -m 644 rmz/man/rmz.1 cpz/man/cpz.1 $(to)/share/man/man1
	[ -z "$$RELEASE_URL" ] || printf '.PP\nHome page: %s\n' "$$RELEASE_URL" | \
		tee -a $(to)/share/man/man1/rmz.1 >>$(to)/share/man/man1/cpz.1
	for name in rmz cpz; do \
		install -m 644 $$name/completions/$$name.bash $(to)/share/bash-completion/completions/$$name && \
		install -m 644 $$name/completions/_$$name $(to)/share/zsh/site-functions && \
		install -m 644 $$name/completions/$$name.fish $(to)/share/fish/vendor_completions.d || exit; \
	done

uninstall:
	for name in rmz cpz; do \
		rm -f $(to)/bin/$$name $(to)/share/man/man1/$$name.1 $(to)/share/bash-completion/completions/$$name \
			$(to)/share/zsh/site-functions/_$$name $(to)/share/fish/vendor_completions.d/$$name.fish || exit; \
	done

.PHONY: build install uninstall
